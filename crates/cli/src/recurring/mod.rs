//! `segno recurring …`: work that is done again and again, one file per verb or pair of verbs.

pub mod arguments;
mod change;
mod fields;
mod history;
mod list;
mod preview;
mod run;
mod steer;

use crate::exit::Failure;
use crate::output::Output;
use arguments::{RecurringArguments, RecurringVerb};

/// Does what was asked.
pub async fn run(arguments: RecurringArguments, output: &Output) -> Result<(), Failure> {
    match arguments.verb {
        RecurringVerb::Preview(arguments) => preview::run(&arguments, output),
        RecurringVerb::Create(arguments) => change::create(*arguments, output).await,
        RecurringVerb::Update(arguments) => change::update(*arguments, output).await,
        RecurringVerb::List(arguments) => list::list(arguments, output).await,
        RecurringVerb::Show(arguments) => list::show(arguments, output).await,
        RecurringVerb::Pause(arguments) => steer::pause(arguments, output).await,
        RecurringVerb::Resume(arguments) => steer::resume(arguments, output).await,
        RecurringVerb::Run(arguments) => run::run(arguments, output).await,
        RecurringVerb::Delete(arguments) => steer::delete(arguments, output).await,
        RecurringVerb::History(arguments) => history::history(arguments, output).await,
        RecurringVerb::Explain(arguments) => history::explain(arguments, output).await,
        RecurringVerb::Backfill(arguments) => history::backfill(arguments, output).await,
    }
}
