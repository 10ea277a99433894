// SPDX-License-Identifier: Apache-2.0
// Made by find_des_sboxes.cpp. The S-boxes of DES (FIPS 46-3) as circuits of functions of three
// bits, 27, 25, 26, 21, 27, 26, 26, 25 of them (25.4 on average).
//
// x1 to x6 are an S-box's inputs, the first being the highest of the six; out[0] is the highest of
// the four outputs. Each word holds a bit of 32 blocks.
#pragma once

#include "gpu_engine/cuda/kernels/lut3.h"

namespace nacre::engine::cuda {

inline constexpr int des_sbox_gates[8] = {27, 25, 26, 21, 27, 26, 26, 25};

template <int box>
NACRE_HOST_DEVICE void des_sbox(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                std::uint32_t (&out)[4]);

template <>
NACRE_HOST_DEVICE inline void des_sbox<0>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0x48>(x6, x4, x2);
  const std::uint32_t t2 = lut3<0x1e>(t1, x1, x3);
  const std::uint32_t t3 = lut3<0x3a>(x3, x1, x6);
  const std::uint32_t t4 = lut3<0x6d>(t3, x2, t2);
  const std::uint32_t t5 = lut3<0xca>(x4, t2, t4);
  const std::uint32_t t6 = lut3<0x14>(x1, x4, x6);
  const std::uint32_t t7 = lut3<0x32>(t4, x2, t5);
  const std::uint32_t t8 = lut3<0x29>(t6, t7, x3);
  const std::uint32_t t9 = lut3<0xac>(x5, t5, t8);
  const std::uint32_t t10 = lut3<0xa4>(x3, t5, t9);
  const std::uint32_t t11 = lut3<0x25>(t10, x4, x5);
  const std::uint32_t t12 = lut3<0x65>(x5, t5, t8);
  const std::uint32_t t13 = lut3<0xac>(x2, t11, t12);
  const std::uint32_t t14 = lut3<0x6e>(t2, x5, x1);
  const std::uint32_t t15 = lut3<0x96>(t14, t10, x4);
  const std::uint32_t t16 = lut3<0xac>(x6, t13, t15);
  const std::uint32_t t17 = lut3<0x8c>(t11, t9, x6);
  const std::uint32_t t18 = lut3<0x69>(t17, t5, t8);
  const std::uint32_t t19 = lut3<0x3d>(t5, t15, t3);
  const std::uint32_t t20 = lut3<0x76>(t8, t12, t2);
  const std::uint32_t t21 = lut3<0xc1>(t19, t20, t10);
  const std::uint32_t t22 = lut3<0xac>(x1, t18, t21);
  const std::uint32_t t23 = lut3<0xda>(t16, x5, t9);
  const std::uint32_t t24 = lut3<0x69>(t23, t22, x2);
  const std::uint32_t t25 = lut3<0x7a>(t21, t9, t16);
  const std::uint32_t t26 = lut3<0x96>(t25, x1, x5);
  const std::uint32_t t27 = lut3<0xac>(x6, t24, t26);
  out[0] = t27;
  out[1] = t16;
  out[2] = t9;
  out[3] = t22;
}

template <>
NACRE_HOST_DEVICE inline void des_sbox<1>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0x92>(x3, x2, x6);
  const std::uint32_t t2 = lut3<0x48>(t1, x5, x4);
  const std::uint32_t t3 = lut3<0x95>(x2, x4, t1);
  const std::uint32_t t4 = lut3<0xca>(x5, t2, t3);
  const std::uint32_t t5 = lut3<0x14>(t1, t4, x5);
  const std::uint32_t t6 = lut3<0x62>(x2, t2, x6);
  const std::uint32_t t7 = lut3<0x69>(t5, t6, x3);
  const std::uint32_t t8 = lut3<0xac>(x1, t4, t7);
  const std::uint32_t t9 = lut3<0x18>(x2, x6, t7);
  const std::uint32_t t10 = lut3<0x69>(t9, x1, x4);
  const std::uint32_t t11 = lut3<0x1e>(t8, x4, x1);
  const std::uint32_t t12 = lut3<0xa6>(t2, t6, x2);
  const std::uint32_t t13 = lut3<0x59>(t11, t12, t10);
  const std::uint32_t t14 = lut3<0xac>(x5, t10, t13);
  const std::uint32_t t15 = lut3<0x1e>(t6, x1, t9);
  const std::uint32_t t16 = lut3<0x6a>(t15, x6, t10);
  const std::uint32_t t17 = lut3<0xae>(t9, t15, t8);
  const std::uint32_t t18 = lut3<0x69>(t17, t14, x2);
  const std::uint32_t t19 = lut3<0xca>(x5, t16, t18);
  const std::uint32_t t20 = lut3<0x9a>(x3, t4, t6);
  const std::uint32_t t21 = lut3<0x25>(t3, t11, t16);
  const std::uint32_t t22 = lut3<0xca>(x1, t20, t21);
  const std::uint32_t t23 = lut3<0x68>(x6, t7, t13);
  const std::uint32_t t24 = lut3<0x34>(t23, t10, t22);
  const std::uint32_t t25 = lut3<0xca>(x2, t22, t24);
  out[0] = t8;
  out[1] = t14;
  out[2] = t25;
  out[3] = t19;
}

template <>
NACRE_HOST_DEVICE inline void des_sbox<2>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0x2c>(x3, x4, x6);
  const std::uint32_t t2 = lut3<0x96>(x3, x4, x6);
  const std::uint32_t t3 = lut3<0xca>(x2, t1, t2);
  const std::uint32_t t4 = lut3<0x8e>(t3, x4, t1);
  const std::uint32_t t5 = lut3<0x4b>(t4, x2, t2);
  const std::uint32_t t6 = lut3<0xac>(x1, t3, t5);
  const std::uint32_t t7 = lut3<0x07>(x3, t1, x2);
  const std::uint32_t t8 = lut3<0x94>(x1, t5, t4);
  const std::uint32_t t9 = lut3<0x4d>(t7, t8, t6);
  const std::uint32_t t10 = lut3<0xca>(x5, t6, t9);
  const std::uint32_t t11 = lut3<0xd8>(x3, x4, x5);
  const std::uint32_t t12 = lut3<0x96>(t11, t2, x2);
  const std::uint32_t t13 = lut3<0x1c>(t1, t9, x6);
  const std::uint32_t t14 = lut3<0x7a>(x5, t10, x2);
  const std::uint32_t t15 = lut3<0x69>(t13, t14, x3);
  const std::uint32_t t16 = lut3<0xac>(x1, t12, t15);
  const std::uint32_t t17 = lut3<0x8a>(x4, t10, x6);
  const std::uint32_t t18 = lut3<0x69>(t17, t2, t12);
  const std::uint32_t t19 = lut3<0xe6>(t9, x5, t4);
  const std::uint32_t t20 = lut3<0x3a>(t19, t18, t3);
  const std::uint32_t t21 = lut3<0xca>(x1, t18, t20);
  const std::uint32_t t22 = lut3<0x76>(t15, t4, x1);
  const std::uint32_t t23 = lut3<0x96>(t22, t5, x5);
  const std::uint32_t t24 = lut3<0x36>(t10, t1, t8);
  const std::uint32_t t25 = lut3<0x94>(t24, t22, t12);
  const std::uint32_t t26 = lut3<0xca>(x2, t23, t25);
  out[0] = t26;
  out[1] = t21;
  out[2] = t10;
  out[3] = t16;
}

template <>
NACRE_HOST_DEVICE inline void des_sbox<3>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0x1c>(x2, x3, x4);
  const std::uint32_t t2 = lut3<0x7a>(x2, x3, x4);
  const std::uint32_t t3 = lut3<0xca>(x5, t1, t2);
  const std::uint32_t t4 = lut3<0x58>(t2, x2, x5);
  const std::uint32_t t5 = lut3<0xe1>(t4, t1, x3);
  const std::uint32_t t6 = lut3<0xca>(x1, t3, t5);
  const std::uint32_t t7 = lut3<0xa6>(x2, t2, x3);
  const std::uint32_t t8 = lut3<0x2d>(t7, t5, x5);
  const std::uint32_t t9 = lut3<0xd6>(x5, t3, t8);
  const std::uint32_t t10 = lut3<0xca>(x1, t8, t9);
  const std::uint32_t t11 = lut3<0xac>(x6, t6, t10);
  const std::uint32_t t12 = lut3<0x3a>(x6, t6, t10);
  const std::uint32_t t13 = lut3<0x94>(t3, x1, x5);
  const std::uint32_t t14 = lut3<0x5a>(t13, t7, t8);
  const std::uint32_t t15 = lut3<0xa3>(x1, t3, t5);
  const std::uint32_t t16 = lut3<0xac>(x2, t14, t15);
  const std::uint32_t t17 = lut3<0x6d>(t14, t2, t10);
  const std::uint32_t t18 = lut3<0xa4>(t3, x2, x4);
  const std::uint32_t t19 = lut3<0x38>(t17, t18, t8);
  const std::uint32_t t20 = lut3<0xac>(x6, t16, t19);
  const std::uint32_t t21 = lut3<0xc5>(x6, t16, t19);
  out[0] = t21;
  out[1] = t20;
  out[2] = t12;
  out[3] = t11;
}

template <>
NACRE_HOST_DEVICE inline void des_sbox<4>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0xd6>(x1, x5, x3);
  const std::uint32_t t2 = lut3<0x69>(t1, x2, x6);
  const std::uint32_t t3 = lut3<0xa4>(x3, x5, x6);
  const std::uint32_t t4 = lut3<0xd3>(t3, t2, x1);
  const std::uint32_t t5 = lut3<0x24>(x5, t1, x3);
  const std::uint32_t t6 = lut3<0xc6>(t5, x1, t2);
  const std::uint32_t t7 = lut3<0xac>(x2, t4, t6);
  const std::uint32_t t8 = lut3<0xca>(x4, t2, t7);
  const std::uint32_t t9 = lut3<0x56>(x1, x6, x4);
  const std::uint32_t t10 = lut3<0x1a>(t9, t2, t8);
  const std::uint32_t t11 = lut3<0x1a>(t4, x2, t9);
  const std::uint32_t t12 = lut3<0xd2>(t11, t1, x4);
  const std::uint32_t t13 = lut3<0xca>(x3, t10, t12);
  const std::uint32_t t14 = lut3<0x9a>(x3, t6, t12);
  const std::uint32_t t15 = lut3<0x2d>(t14, x1, x6);
  const std::uint32_t t16 = lut3<0xac>(x5, t13, t15);
  const std::uint32_t t17 = lut3<0x7a>(t15, t12, x5);
  const std::uint32_t t18 = lut3<0x9e>(t7, x2, t3);
  const std::uint32_t t19 = lut3<0x96>(t17, t18, t13);
  const std::uint32_t t20 = lut3<0xd2>(t3, x1, t12);
  const std::uint32_t t21 = lut3<0xb5>(t20, t15, t6);
  const std::uint32_t t22 = lut3<0xac>(x4, t19, t21);
  const std::uint32_t t23 = lut3<0xbc>(t16, x4, t17);
  const std::uint32_t t24 = lut3<0x85>(t23, t1, t6);
  const std::uint32_t t25 = lut3<0x8e>(t5, x6, t18);
  const std::uint32_t t26 = lut3<0x6b>(t25, t4, t10);
  const std::uint32_t t27 = lut3<0xac>(x2, t24, t26);
  out[0] = t27;
  out[1] = t8;
  out[2] = t22;
  out[3] = t16;
}

template <>
NACRE_HOST_DEVICE inline void des_sbox<5>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0x96>(x1, x4, x6);
  const std::uint32_t t2 = lut3<0x40>(x4, x2, x1);
  const std::uint32_t t3 = lut3<0xb9>(t2, t1, x3);
  const std::uint32_t t4 = lut3<0xac>(x2, t1, t3);
  const std::uint32_t t5 = lut3<0xc8>(x1, x6, x4);
  const std::uint32_t t6 = lut3<0x85>(t5, t3, x2);
  const std::uint32_t t7 = lut3<0x9b>(x2, t1, t5);
  const std::uint32_t t8 = lut3<0xac>(x3, t6, t7);
  const std::uint32_t t9 = lut3<0xca>(x5, t4, t8);
  const std::uint32_t t10 = lut3<0x63>(t9, t5, x1);
  const std::uint32_t t11 = lut3<0xa4>(t1, t7, x2);
  const std::uint32_t t12 = lut3<0x63>(t10, t11, x3);
  const std::uint32_t t13 = lut3<0xee>(x1, t10, t6);
  const std::uint32_t t14 = lut3<0x69>(t13, x3, t9);
  const std::uint32_t t15 = lut3<0xac>(x5, t12, t14);
  const std::uint32_t t16 = lut3<0x34>(t13, t3, t1);
  const std::uint32_t t17 = lut3<0xa4>(t15, x6, x1);
  const std::uint32_t t18 = lut3<0x9a>(t16, t17, t11);
  const std::uint32_t t19 = lut3<0x46>(t15, t3, t11);
  const std::uint32_t t20 = lut3<0xb4>(t19, t10, x6);
  const std::uint32_t t21 = lut3<0xca>(x5, t18, t20);
  const std::uint32_t t22 = lut3<0x38>(t21, t3, t17);
  const std::uint32_t t23 = lut3<0x96>(t22, t9, t1);
  const std::uint32_t t24 = lut3<0xda>(t6, t15, t3);
  const std::uint32_t t25 = lut3<0x69>(t24, x5, t7);
  const std::uint32_t t26 = lut3<0xac>(x1, t23, t25);
  out[0] = t9;
  out[1] = t26;
  out[2] = t15;
  out[3] = t21;
}

template <>
NACRE_HOST_DEVICE inline void des_sbox<6>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0xc6>(x6, x2, x3);
  const std::uint32_t t2 = lut3<0x14>(t1, x4, x5);
  const std::uint32_t t3 = lut3<0x26>(t1, x6, x2);
  const std::uint32_t t4 = lut3<0x5c>(t3, x4, x3);
  const std::uint32_t t5 = lut3<0xac>(x5, t2, t4);
  const std::uint32_t t6 = lut3<0x68>(x2, t1, x4);
  const std::uint32_t t7 = lut3<0x69>(t6, t3, x3);
  const std::uint32_t t8 = lut3<0x4d>(x2, t1, t7);
  const std::uint32_t t9 = lut3<0xca>(x5, t7, t8);
  const std::uint32_t t10 = lut3<0xca>(x1, t5, t9);
  const std::uint32_t t11 = lut3<0x87>(x5, t1, t7);
  const std::uint32_t t12 = lut3<0x94>(t5, t7, t9);
  const std::uint32_t t13 = lut3<0xac>(x4, t11, t12);
  const std::uint32_t t14 = lut3<0x2c>(x4, t6, x3);
  const std::uint32_t t15 = lut3<0x9c>(t14, t9, t3);
  const std::uint32_t t16 = lut3<0xac>(x1, t13, t15);
  const std::uint32_t t17 = lut3<0x7c>(x1, t15, t9);
  const std::uint32_t t18 = lut3<0x78>(t17, t7, x2);
  const std::uint32_t t19 = lut3<0x8a>(t8, t16, x6);
  const std::uint32_t t20 = lut3<0x59>(t19, t11, t17);
  const std::uint32_t t21 = lut3<0xac>(x4, t18, t20);
  const std::uint32_t t22 = lut3<0x74>(t5, t19, t10);
  const std::uint32_t t23 = lut3<0x96>(t22, t21, t3);
  const std::uint32_t t24 = lut3<0x5c>(x1, t22, t13);
  const std::uint32_t t25 = lut3<0xd2>(t24, t17, t19);
  const std::uint32_t t26 = lut3<0xca>(x5, t23, t25);
  out[0] = t10;
  out[1] = t16;
  out[2] = t26;
  out[3] = t21;
}

template <>
NACRE_HOST_DEVICE inline void des_sbox<7>(std::uint32_t x1, std::uint32_t x2, std::uint32_t x3,
                                          std::uint32_t x4, std::uint32_t x5, std::uint32_t x6,
                                          std::uint32_t (&out)[4]) {
  const std::uint32_t t1 = lut3<0xe2>(x2, x3, x5);
  const std::uint32_t t2 = lut3<0x4d>(x2, x3, x5);
  const std::uint32_t t3 = lut3<0xca>(x4, t1, t2);
  const std::uint32_t t4 = lut3<0x52>(x2, x4, x3);
  const std::uint32_t t5 = lut3<0xa4>(t4, t2, x5);
  const std::uint32_t t6 = lut3<0xac>(x1, t3, t5);
  const std::uint32_t t7 = lut3<0x86>(x3, t1, x4);
  const std::uint32_t t8 = lut3<0x95>(t7, x1, t6);
  const std::uint32_t t9 = lut3<0xac>(x6, t6, t8);
  const std::uint32_t t10 = lut3<0x14>(t8, x2, x4);
  const std::uint32_t t11 = lut3<0x96>(t10, t5, x1);
  const std::uint32_t t12 = lut3<0x2e>(x1, x5, t8);
  const std::uint32_t t13 = lut3<0x61>(t12, x4, t4);
  const std::uint32_t t14 = lut3<0x95>(x2, t7, t12);
  const std::uint32_t t15 = lut3<0xca>(x3, t13, t14);
  const std::uint32_t t16 = lut3<0xca>(x6, t11, t15);
  const std::uint32_t t17 = lut3<0x0d>(t11, t13, t14);
  const std::uint32_t t18 = lut3<0xae>(t12, t7, t5);
  const std::uint32_t t19 = lut3<0x1c>(t17, t18, x5);
  const std::uint32_t t20 = lut3<0x3a>(x6, t15, t19);
  const std::uint32_t t21 = lut3<0x96>(t16, t20, t9);
  const std::uint32_t t22 = lut3<0x63>(t21, t4, t10);
  const std::uint32_t t23 = lut3<0xe8>(t22, x4, t20);
  const std::uint32_t t24 = lut3<0x6a>(t23, x5, t21);
  const std::uint32_t t25 = lut3<0xac>(x2, t22, t24);
  out[0] = t20;
  out[1] = t9;
  out[2] = t25;
  out[3] = t16;
}

}  // namespace nacre::engine::cuda
