//! Damage: found by a check or by a read, and salvage of what is readable.
//!
//! | file | concept |
//! |---|---|
//! | `check`, `consistency` | reads every byte; compares rows with their indexes and counters |
//! | `damage` | the known damage of an open store |
//! | `salvage`, `salvage_reader` | copies the readable rows of a damaged store into a new one |

pub(crate) mod check;
pub(crate) mod consistency;
pub(crate) mod damage;
pub(crate) mod salvage;
pub(crate) mod salvage_reader;
