//! Examples; see the programs in `src/bin`.
