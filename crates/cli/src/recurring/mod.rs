//! `segno recurring …`: work that is done again and again, one file per verb.

pub mod arguments;
mod preview;

use crate::arguments::Format;
use crate::exit::Failure;
use arguments::{RecurringArguments, RecurringVerb};

/// Does what was asked.
pub fn run(arguments: &RecurringArguments, format: Format) -> Result<(), Failure> {
    match &arguments.verb {
        RecurringVerb::Preview(arguments) => preview::run(arguments, format),
    }
}
