//! `segno recurring …`: work that is done again and again, one file per verb or pair of verbs.

pub mod arguments;
mod change;
mod fields;
mod history;
mod list;
mod preview;
mod steer;

use crate::arguments::Format;
use crate::exit::Failure;
use arguments::{RecurringArguments, RecurringVerb};

/// Does what was asked.
pub async fn run(arguments: RecurringArguments, format: Format) -> Result<(), Failure> {
    match arguments.verb {
        RecurringVerb::Preview(arguments) => preview::run(&arguments, format),
        RecurringVerb::Create(arguments) => change::create(*arguments, format).await,
        RecurringVerb::Update(arguments) => change::update(*arguments, format).await,
        RecurringVerb::List(arguments) => list::list(arguments, format).await,
        RecurringVerb::Show(arguments) => list::show(arguments, format).await,
        RecurringVerb::Pause(arguments) => steer::pause(arguments, format).await,
        RecurringVerb::Resume(arguments) => steer::resume(arguments, format).await,
        RecurringVerb::Delete(arguments) => steer::delete(arguments, format).await,
        RecurringVerb::History(arguments) => history::history(arguments, format).await,
        RecurringVerb::Explain(arguments) => history::explain(arguments, format).await,
        RecurringVerb::Backfill(arguments) => history::backfill(arguments, format).await,
    }
}
