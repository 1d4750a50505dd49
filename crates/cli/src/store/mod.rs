//! `segno store …`: looking after a store.

mod backup;
mod check;
mod compact;
mod copy;
mod info;
mod ledger;
mod restore;
mod salvage;
mod verify;

use jiff::Timestamp;
use segno_stores::{ContentSummary, Finding, StoreUrl};
use serde::Serialize;

use crate::arguments::{StoreArguments, Verb};
use crate::exit::Failure;
use crate::output::{Output, Table, count};

/// Does what was asked.
pub async fn run(arguments: StoreArguments, output: &Output) -> Result<(), Failure> {
    match arguments.verb {
        Verb::Info { store } => info::run(&on_disk(store)?, output).await,
        Verb::Backup { store, file, overwrite } => {
            let if_there =
                if overwrite { segno_stores::IfThere::Replace } else { segno_stores::IfThere::Refuse };
            backup::run(&on_disk(store)?, &file, if_there, output).await
        }
        Verb::Restore { file, store, ledger } => {
            restore::run(&file, &on_disk(store)?, ledger.as_deref(), output).await
        }
        Verb::Copy { from, to, ledger } => {
            copy::run(&on_disk(from)?, &on_disk(to)?, ledger.as_deref(), output).await
        }
        Verb::Verify { file } => {
            let output = output.clone();
            blocking(move || verify::run(&file, &output)).await
        }
        Verb::Check { store } => {
            let (store, output) = (on_disk(store)?, output.clone());
            blocking(move || check::run(&store, &output)).await
        }
        Verb::Salvage { from, to } => {
            let (from, to, output) = (on_disk(from)?, on_disk(to)?, output.clone());
            blocking(move || salvage::run(&from, &to, &output)).await
        }
        Verb::Compact { store } => {
            let (store, output) = (on_disk(store)?, output.clone());
            blocking(move || compact::run(&store, &output)).await
        }
    }
}

/// Runs what never waits for anything but the disk.
async fn blocking(work: impl FnOnce() -> Result<(), Failure> + Send + 'static) -> Result<(), Failure> {
    let outcome = tokio::task::spawn_blocking(work).await;
    outcome.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// A store in memory is gone with this process, so it makes no sense here.
fn on_disk(store: StoreUrl) -> Result<StoreUrl, Failure> {
    match store {
        StoreUrl::Memory => Err(Failure::Refused("memory: holds nothing here; use segno:DIR".to_owned())),
        store => Ok(store),
    }
}

/// Something that is wrong.
#[derive(Debug, Serialize)]
struct Problem {
    place: String,
    key: String,
    problem: String,
}

impl From<&Finding> for Problem {
    fn from(finding: &Finding) -> Self {
        let Finding { place, key, problem } = finding.clone();
        Problem { place, key, problem }
    }
}

/// What a transfer has moved.
#[derive(Debug, Serialize)]
struct Moved {
    from: String,
    to: String,
    #[serde(flatten)]
    content: Content,
    #[serde(flatten)]
    ledger: ledger::ShownLedger,
}

/// What a content has, as programs read it.
#[derive(Debug, Serialize)]
struct Content {
    /// By the clock of the source.
    taken_at: Option<Timestamp>,
    instances: u64,
    executions: u64,
    events: u64,
    messages: u64,
    work_items: u64,
    records: u64,
    sha256: String,
}

impl From<ContentSummary> for Content {
    fn from(content: ContentSummary) -> Self {
        Content {
            taken_at: time_of_ms(content.taken_at_ms),
            instances: content.instances,
            executions: content.executions,
            events: content.events,
            messages: content.messages,
            work_items: content.work_items,
            records: content.records,
            sha256: content.sha256,
        }
    }
}

/// A time, unless it is beyond all that calendars know.
fn time_of_ms(unix_ms: u64) -> Option<Timestamp> {
    i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

impl Moved {
    fn table(&self) -> Table {
        let content = &self.content;
        let table = Table::default()
            .line("from", &self.from)
            .line("to", &self.to)
            .section("moved and verified")
            .line("instances", count(content.instances))
            .line("executions", count(content.executions))
            .line("events", count(content.events))
            .line("queued messages", count(content.messages))
            .line("queued activities", count(content.work_items))
            .line("records", count(content.records))
            .line("sha256", &content.sha256);
        self.ledger.lines(table)
    }
}

/// Refuses to make a store inside the one that it is made from.
fn check_target(from: &StoreUrl, to: &StoreUrl) -> Result<(), Failure> {
    match to {
        StoreUrl::Embedded(directory) if from.has_inside(directory) => {
            Err(Failure::Refused(format!("{to} is inside {from}; choose a directory outside of it")))
        }
        _ => Ok(()),
    }
}
