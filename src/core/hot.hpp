// Loops that are worth the processor's widest registers. The package is built once for all processors of a kind; of a
// function marked CELLGUARD_HOT several versions are built, and the one that fits is chosen when the module is loaded.
// Fused multiplication and addition is off in all of them (CMakeLists.txt): the same bits on every machine.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) &&                       \
    !defined(__SANITIZE_ADDRESS__)
#define CELLGUARD_HOT __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CELLGUARD_HOT
#endif
