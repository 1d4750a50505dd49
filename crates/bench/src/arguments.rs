//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use segno_stores::StoreUrl;

use crate::workload::{Fanout, Hello, Inline, Long, Sequence, Timers, Workload};

/// Measures Segno on a store.
#[derive(Debug, Parser)]
#[command(name = "segno-bench", version, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload, or all of them in turn.
    Run(RunArguments),
    /// Measure the synced log alone: what the disk allows at most.
    Floor(FloorArguments),
    /// Load a running server (`segno dev`) over HTTP.
    Http(HttpArguments),
    /// Store very many recurring actions and fire those that are due in the same second.
    Recurring(RecurringArguments),
    /// Take a batch of many members through three phases of four steps each.
    Runbook(RunbookArguments),
    /// Run a DAG many times: tasks per second, and how soon each task starts and is shown.
    Dag(DagArguments),
    /// Fill a store with very many instances, and measure SQL over them at a server.
    Sql(SqlArguments),
    /// Call a function that runs in another process: server, worker and clients are processes of
    /// their own.
    Remote(RemoteArguments),
}

impl Command {
    /// Asks for JSON, whatever was said.
    #[must_use]
    pub fn as_json(mut self) -> Self {
        let json = match &mut self {
            Command::Run(arguments) => &mut arguments.json,
            Command::Floor(arguments) => &mut arguments.json,
            Command::Http(arguments) => &mut arguments.json,
            Command::Recurring(arguments) => &mut arguments.json,
            Command::Runbook(arguments) => &mut arguments.json,
            Command::Dag(arguments) => &mut arguments.json,
            Command::Sql(SqlArguments { verb: SqlVerb::Fill(arguments) }) => &mut arguments.json,
            Command::Sql(SqlArguments { verb: SqlVerb::Query(arguments) }) => &mut arguments.json,
            Command::Remote(arguments) => &mut arguments.json,
        };
        *json = true;
        self
    }
}

/// How many recurring actions there are.
#[derive(Debug, Args)]
pub struct RecurringArguments {
    /// Store of the recurring actions: `memory:`, `segno:DIR` or `postgres://…`. It should be empty.
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub store: StoreUrl,

    /// Definitions that are stored and not due.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub definitions: u32,

    /// Definitions that are due in the same second.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub due: u32,

    /// Print a JSON object instead of lines of text.
    #[arg(long)]
    pub json: bool,
}

/// How large a batch is.
#[derive(Debug, Args)]
pub struct RunbookArguments {
    /// Store of the batch: `memory:`, `segno:DIR` or `postgres://…`. It should be empty.
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub store: StoreUrl,

    /// Members of the batch.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub members: u32,

    /// Polls of the first step of each member before it is complete.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub polls: u32,

    /// Seconds between polls.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub poll_every: u64,

    /// Give up after so many seconds.
    #[arg(long, value_name = "S", default_value_t = 1_800, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub give_up: u64,

    /// Print a JSON object instead of lines of text.
    #[arg(long)]
    pub json: bool,
}

/// How runs of a DAG are measured.
#[derive(Debug, Args)]
pub struct DagArguments {
    /// Store of the calls: `memory:`, `segno:DIR` or `postgres://…`. It should be empty.
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub store: StoreUrl,

    /// Ledger: `memory:` or a directory. It should be empty.
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub ledger: String,

    /// Runs.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: u32,

    /// Tasks of each run.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tasks: u32,

    /// Tasks of a run that can run at the same time: the run has as many chains.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub width: u32,

    /// Runs that end before the measurement begins: the tables are as large as after so much work.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub finished: u32,

    /// Delay every call of the object store by so many milliseconds, as a distant store would.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub object_delay: u64,

    /// Start runs at a rate of so many tasks a second; all at once without it.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub rate: u32,

    /// Give up after so many seconds.
    #[arg(long, value_name = "S", default_value_t = 1_800, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub give_up: u64,

    /// Print a JSON object instead of lines of text.
    #[arg(long)]
    pub json: bool,
}

/// How calls of a function in another process are measured.
#[derive(Debug, Clone, Args)]
pub struct RemoteArguments {
    /// How a call reaches the worker.
    #[arg(long, value_enum, default_value_t = RemoteMode::Pull)]
    pub mode: RemoteMode,

    /// Clients at once; each makes a call, waits for its result, and makes the next.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub clients: u32,

    /// Store of the server: `memory:`, `segno:DIR` or `postgres://…`. It should be empty.
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub store: StoreUrl,

    /// How long to measure, after a short warm-up.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,

    /// With `--mode pull`: answer each call by a request of its own instead of by `POST
    /// /v1/work/exchange`.
    #[arg(long)]
    pub single: bool,

    /// Program of the server; `segno` in the directory of this program without it.
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,

    /// Print a JSON object instead of lines of text.
    #[arg(long)]
    pub json: bool,

    /// Be this part of a measurement that another process makes.
    #[arg(long, value_enum, hide = true, requires = "peer")]
    pub part: Option<RemotePart>,

    /// The server of that measurement.
    #[arg(long, hide = true)]
    pub peer: Option<String>,
}

/// How a call reaches a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RemoteMode {
    /// The worker fetches calls of a remote function.
    Pull,
    /// The server sends calls of a remote function to the URL of the worker.
    Push,
    /// The server runs a function of the executor `http`.
    Http,
}

impl RemoteMode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RemoteMode::Pull => "pull",
            RemoteMode::Push => "push",
            RemoteMode::Http => "http",
        }
    }
}

/// A process of a measurement beside the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RemotePart {
    /// Runs the function.
    Worker,
    /// The clients, which call the function.
    Clients,
}

/// SQL over very many instances.
#[derive(Debug, Args)]
pub struct SqlArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: SqlVerb,
}

/// What to do about SQL.
#[derive(Debug, Subcommand)]
pub enum SqlVerb {
    /// Fill an empty store with instances that have ended.
    Fill(SqlFillArguments),
    /// Measure queries at a server that runs on such a store.
    Query(SqlQueryArguments),
}

/// How a store is filled with instances.
#[derive(Debug, Args)]
pub struct SqlFillArguments {
    /// The store: `segno:DIR` or `postgres://…`. It must be empty, and no server may have it open.
    #[arg(long, value_name = "URL")]
    pub store: StoreUrl,

    /// Instances.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub instances: u32,

    /// Print a JSON object instead of lines of text.
    #[arg(long)]
    pub json: bool,
}

/// How queries are measured.
#[derive(Debug, Args)]
pub struct SqlQueryArguments {
    /// The server.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    pub server: String,

    /// API key.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// Process of the server on this machine, for its processor time and memory.
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,

    /// How often each query is run.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,

    /// Print one JSON object per line instead of lines of text.
    #[arg(long)]
    pub json: bool,
}

/// How to load a server.
#[derive(Debug, Args)]
pub struct HttpArguments {
    /// What to send.
    #[arg(value_enum)]
    pub load: HttpLoad,

    /// The server.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    pub server: String,

    /// API key.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// Connections at once; each sends a request, waits for the answer, and sends the next.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,

    /// How long to measure.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,

    /// Print a JSON object instead of a line of text.
    #[arg(long)]
    pub json: bool,
}

/// What to send to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HttpLoad {
    /// Read one instance again and again.
    Get,
    /// Start instances of the sample `greet`.
    Start,
}

impl HttpLoad {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            HttpLoad::Get => "get",
            HttpLoad::Start => "start",
        }
    }
}

/// How to measure the floor.
#[derive(Debug, Args)]
pub struct FloorArguments {
    /// Where the log is written: `segno:DIR`.
    #[arg(long, value_name = "URL")]
    pub store: StoreUrl,

    /// Writers at once; each appends a turn, waits until it is durable, and appends the next.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrency: u32,

    /// How long to measure.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,

    /// Print a JSON object instead of a line of text.
    #[arg(long)]
    pub json: bool,
}

/// How to run a workload.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Which workload.
    #[arg(value_enum)]
    pub workload: WorkloadName,

    /// Where the instances are kept: `memory:`, `segno:DIR` or `postgres://…`.
    #[arg(long, value_name = "URL", default_value = "memory:")]
    pub store: StoreUrl,

    /// Clients at once; each starts an instance, waits for its result, and starts the next.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrency: u32,

    /// Nodes in this process; clients are spread over them. More than one needs a store that nodes can share.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub nodes: u8,

    /// How long to measure, after a short warm-up.
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,

    /// How many timers there are in the workload `timers`.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub timers: u32,

    /// Over how many milliseconds their due times are spread; with 0 all are due at the same moment.
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub spread_ms: u64,

    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// The workloads by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// One activity.
    Hello,
    /// Five activities, one after the other.
    Sequence,
    /// Five activities at once.
    Fanout,
    /// Ten inline steps.
    Inline,
    /// One instance with 10,000 activities, one after the other.
    Long,
    /// Many durable timers that are due within a second.
    Timers,
    /// All workloads in turn.
    All,
}

impl WorkloadName {
    /// The workloads that a name stands for.
    pub(crate) fn list(self) -> Vec<Box<dyn Workload>> {
        match self {
            WorkloadName::Hello => vec![Box::new(Hello)],
            WorkloadName::Sequence => vec![Box::new(Sequence)],
            WorkloadName::Fanout => vec![Box::new(Fanout)],
            WorkloadName::Inline => vec![Box::new(Inline)],
            WorkloadName::Long => vec![Box::new(Long::default())],
            WorkloadName::Timers => vec![Box::new(Timers::default())],
            WorkloadName::All => {
                let names = WorkloadName::value_variants().iter();
                names.filter(|name| **name != WorkloadName::All).flat_map(|name| name.list()).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<RunArguments, String> {
        let parsed = Arguments::try_parse_from(line.split_whitespace());
        parsed
            .map(|arguments| match arguments.command {
                Command::Run(run) => run,
                other => panic!("{other:?} is not a run"),
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_line_is_understood() {
        let run =
            parse("segno-bench run sequence --store memory: --concurrency 256 --seconds 7 --json").unwrap();
        assert_eq!(run.workload, WorkloadName::Sequence);
        assert_eq!(
            (run.concurrency, run.nodes, run.seconds, run.timers, run.json),
            (256, 1, 7, 10_000, true)
        );
        assert_eq!(run.store, StoreUrl::Memory);
    }

    #[test]
    fn bad_arguments_are_refused_with_a_reason() {
        for (line, reason) in [
            ("segno-bench run nothing", "invalid value 'nothing'"),
            ("segno-bench run hello --concurrency 0", "0 is not in 1..=100000"),
            ("segno-bench run hello --concurrency many", "invalid digit"),
            ("segno-bench run hello --nodes 0", "0 is not in 1..=16"),
            ("segno-bench run hello --seconds 0", "0 is not in 1..=3600"),
            ("segno-bench run hello --timers 0", "0 is not in 1..=1000000"),
            ("segno-bench run hello --store redis:", "no store of the kind"),
            ("segno-bench run hello --store postgres://localhost/segno?schema=A", "cannot be a schema"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn all_is_every_workload_once() {
        let names: Vec<&str> = WorkloadName::All.list().iter().map(|workload| workload.name()).collect();
        assert_eq!(names, ["hello", "sequence", "fanout", "inline", "long", "timers"]);
    }
}
