// SPDX-License-Identifier: Apache-2.0
// Sums and products of 32-bit words that hand a carry on, one instruction each on a device. On the
// host the same calls keep the carry in a variable of the thread, so that whatever is built from
// them can be tested there.
//
// A chain is a call without "c" in front (it begins with no carry), calls that take and give the
// carry, and one that ends it. Nothing else may come between them that has a chain of its own. A
// product and its two sums are one instruction (IMAD.WIDE with carry) where low and high word of
// the accumulator lie in a pair of registers.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define NACRE_BOTH_SIDES __host__ __device__ __forceinline__
#else
#define NACRE_BOTH_SIDES inline
#endif

namespace nacre::engine::cuda {

#if !defined(__CUDA_ARCH__)
inline thread_local std::uint32_t host_carry = 0;

inline std::uint32_t host_sum(std::uint64_t sum) {
  host_carry = static_cast<std::uint32_t>(sum >> 32);
  return static_cast<std::uint32_t>(sum);
}

inline std::uint32_t host_difference(std::uint32_t a, std::uint32_t b, std::uint32_t borrow) {
  const std::uint64_t difference = std::uint64_t{a} - b - borrow;
  host_carry = static_cast<std::uint32_t>(difference >> 63);
  return static_cast<std::uint32_t>(difference);
}
#endif

NACRE_BOTH_SIDES std::uint32_t add_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t sum;
  asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return host_sum(std::uint64_t{a} + b);
#endif
}

NACRE_BOTH_SIDES std::uint32_t addc_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t sum;
  asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return host_sum(std::uint64_t{a} + b + host_carry);
#endif
}

NACRE_BOTH_SIDES std::uint32_t addc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t sum;
  asm volatile("addc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return a + b + host_carry;
#endif
}

NACRE_BOTH_SIDES std::uint32_t sub_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t difference;
  asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
#else
  return host_difference(a, b, 0);
#endif
}

NACRE_BOTH_SIDES std::uint32_t subc_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t difference;
  asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
#else
  return host_difference(a, b, host_carry);
#endif
}

// All ones when the chain of differences borrowed, else 0.
NACRE_BOTH_SIDES std::uint32_t borrow_mask() {
#if defined(__CUDA_ARCH__)
  std::uint32_t mask;
  asm volatile("subc.u32 %0, 0, 0;" : "=r"(mask));
  return mask;
#else
  return std::uint32_t{0} - host_carry;
#endif
}

// high:low = a * b + add_high:add_low. low and high may be the words that are added.
NACRE_BOTH_SIDES void mad_wide_cc(std::uint32_t& low, std::uint32_t& high, std::uint32_t a,
                                  std::uint32_t b, std::uint32_t add_low, std::uint32_t add_high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t l;
  std::uint32_t h;
  asm volatile("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(l), "=r"(h)
               : "r"(a), "r"(b), "r"(add_low), "r"(add_high));
  low = l;
  high = h;
#else
  const std::uint64_t product = std::uint64_t{a} * b;
  low = host_sum(std::uint64_t{add_low} + static_cast<std::uint32_t>(product));
  high = host_sum(std::uint64_t{add_high} + (product >> 32) + host_carry);
#endif
}

// The same with the carry before it.
NACRE_BOTH_SIDES void madc_wide_cc(std::uint32_t& low, std::uint32_t& high, std::uint32_t a,
                                   std::uint32_t b, std::uint32_t add_low, std::uint32_t add_high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t l;
  std::uint32_t h;
  asm volatile("madc.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(l), "=r"(h)
               : "r"(a), "r"(b), "r"(add_low), "r"(add_high));
  low = l;
  high = h;
#else
  const std::uint64_t product = std::uint64_t{a} * b;
  low = host_sum(std::uint64_t{add_low} + static_cast<std::uint32_t>(product) + host_carry);
  high = host_sum(std::uint64_t{add_high} + (product >> 32) + host_carry);
#endif
}

}  // namespace nacre::engine::cuda
