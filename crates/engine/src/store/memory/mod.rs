//! The reference store, in memory.
