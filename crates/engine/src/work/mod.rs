//! What becomes of a locked activity, apart from running it.

pub(crate) mod delivery;
pub(crate) mod ending;
pub(crate) mod progress;
