// SPDX-License-Identifier: Apache-2.0
// What clang's thread-safety analysis reads: which mutex guards a member, and which mutexes a
// function needs, takes or must not have. `tests/tidy/thread_safety.py` compiles the product with
// that analysis, and a breach is an error. Other compilers see nothing of this.
//
// Source: clang's "Thread Safety Analysis", https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#if defined(__clang__)
#define NACRE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define NACRE_THREAD_ATTRIBUTE(x)
#endif

// For classes: a mutex, and an object that holds one from its constructor to its destructor.
#define NACRE_CAPABILITY(name) NACRE_THREAD_ATTRIBUTE(capability(name))
#define NACRE_SCOPED_CAPABILITY NACRE_THREAD_ATTRIBUTE(scoped_lockable)

// For members: the mutex that guards the member.
#define NACRE_GUARDED_BY(mutex) NACRE_THREAD_ATTRIBUTE(guarded_by(mutex))

// For functions: the caller must hold the mutex, or must not hold it.
#define NACRE_REQUIRES(...) NACRE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define NACRE_REQUIRES_SHARED(...) NACRE_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define NACRE_EXCLUDES(...) NACRE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

// For functions that take or release the mutex. Without an argument it is the mutex of the object
// itself.
#define NACRE_ACQUIRE(...) NACRE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define NACRE_ACQUIRE_SHARED(...) NACRE_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define NACRE_RELEASE(...) NACRE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define NACRE_RELEASE_SHARED(...) NACRE_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define NACRE_TRY_ACQUIRE(...) NACRE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
// For functions that are called only while the mutex is held, where the analysis cannot see that.
#define NACRE_ASSERT_CAPABILITY(...) NACRE_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))

// For functions that the analysis cannot follow. A comment at the function says why.
#define NACRE_NO_THREAD_SAFETY_ANALYSIS NACRE_THREAD_ATTRIBUTE(no_thread_safety_analysis)
