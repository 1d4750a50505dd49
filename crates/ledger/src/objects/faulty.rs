//! A store with faults.
