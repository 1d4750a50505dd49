//! The program: what its servers run, what its settings are before anything else sets them, and what it is called.

use std::fmt;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::time::Duration;

use segno::RegistryBuilder;
use segno_server::settings::{Layers, Origin, SettingsError};
use segno_server::{FunctionsBuilder, ServerBuilder, samples};

use crate::arguments::{Arguments, Command};
use crate::exit::Failure;
use crate::invocation::{self, Invocation};
use crate::output::{Format, Output};
use crate::wording::Wording;
use crate::{
    action, asset, backfill, config, dag, file_size_limit, keys, ledger, output, recurring, remote, run,
    runbook, selftest, serve, store, version,
};

/// How long threads that still work may take once everything else has ended.
const LAST_THREADS: Duration = Duration::from_secs(5);

/// Adds functions.
type AddFunctions = Box<dyn FnOnce(FunctionsBuilder) -> FunctionsBuilder + Send>;

/// A program with all verbs of `segno`, whose servers run your orchestrations and functions.
///
/// ```no_run
/// use segno::{Context, Failure, Orchestration, Registry};
///
/// const HELLO: Orchestration<String, String> = Orchestration::new("hello");
///
/// async fn hello(_ctx: Context, name: String) -> Result<String, Failure> {
///     Ok(format!("Hello, {name}!"))
/// }
///
/// fn main() -> std::process::ExitCode {
///     segno_cli::Program::new("shop").registry(Registry::builder().orchestration(HELLO, hello)).main()
/// }
/// ```
pub struct Program {
    name: &'static str,
    registry: Option<RegistryBuilder>,
    functions: Vec<AddFunctions>,
    settings: Vec<(String, String)>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Program {
    /// A program that is called `name` in its help and its messages.
    pub fn new(name: &'static str) -> Self {
        Program { name, registry: None, functions: Vec::new(), settings: Vec::new() }
    }

    /// Orchestrations and activities that its servers run.
    #[must_use]
    pub fn registry(mut self, registry: RegistryBuilder) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Functions that are code of this program, or how functions are run.
    #[must_use]
    pub fn functions(
        mut self,
        add: impl FnOnce(FunctionsBuilder) -> FunctionsBuilder + Send + 'static,
    ) -> Self {
        self.functions.push(Box::new(add));
        self
    }

    /// A setting, such as `server.listen`, in the place of its default. A file, the environment and flags still change it.
    #[must_use]
    pub fn setting(mut self, setting: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((setting.into(), value.into()));
        self
    }

    /// Reads the arguments of the process, does what they say, and returns the exit code. Call it from `main`, outside of any
    /// runtime: it makes its own.
    pub fn main(self) -> ExitCode {
        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("{}: no thread can be started: {error}", self.name);
                return ExitCode::FAILURE;
            }
        };
        let code = runtime.block_on(self.run());
        // A thread that hangs, as one that reads a file of a server that is away, does not keep the
        // process from ending.
        runtime.shutdown_timeout(LAST_THREADS);
        code
    }

    async fn run(self) -> ExitCode {
        file_size_limit::fail_writes();
        let invocation = match Invocation::read(self.name, std::env::args_os().collect()) {
            Ok(invocation) => invocation,
            Err(code) => return code,
        };
        let Invocation { arguments, output, wording } = invocation;
        let format = output.format;
        if matches!(arguments.command, Command::Dev(_) | Command::Serve(_)) {
            // A server handles signals itself, and ends in order.
            return finished(self.carry_out(arguments, output).await, &wording, format);
        }
        // On a task of its own, so that Ctrl-C ends it whatever the work is busy with.
        let mut work = tokio::spawn(self.carry_out(arguments, output));
        let outcome = tokio::select! {
            outcome = &mut work => outcome.unwrap_or_else(|error| resume_unwind(error.into_panic())),
            _ = tokio::signal::ctrl_c() => {
                // What was being made is dropped, and with it what it left on the disk. A second Ctrl-C does not wait for that.
                work.abort();
                tokio::select! {
                    _ = &mut work => {}
                    _ = tokio::signal::ctrl_c() => {}
                }
                Err(Failure::Interrupted)
            }
        };
        finished(outcome, &wording, format)
    }

    async fn carry_out(self, arguments: Arguments, output: Output) -> Result<(), Failure> {
        let output = &output;
        match arguments.command {
            Command::Dev(arguments) => serve::dev(arguments, self).await,
            Command::Serve(arguments) => serve::serve(arguments, self).await,
            Command::Config(arguments) => config::run(arguments, self.layers()?, output),
            Command::Keys(arguments) => keys::run(arguments, output).await,
            Command::Action(arguments) => action::run(arguments, output).await,
            Command::Recurring(arguments) => recurring::run(arguments, output).await,
            Command::Runbook(arguments) => runbook::run(arguments, output).await,
            Command::Dag(arguments) => dag::run(arguments, output).await,
            Command::Run(arguments) => run::run(arguments, output).await,
            Command::Task(arguments) => run::run_task(arguments, output).await,
            Command::Asset(arguments) => asset::run(arguments, output).await,
            Command::Backfill(arguments) => backfill::run(arguments, output).await,
            Command::Remote(command) => remote::run(command, output).await,
            Command::Ledger(arguments) => ledger::run(arguments, self.layers()?, output).await,
            Command::Store(arguments) => store::run(arguments, output).await,
            Command::Selftest(arguments) => selftest::run(arguments, output).await,
            Command::Bench(arguments) => {
                let command = match output.format {
                    Format::Table => arguments.command,
                    Format::Json | Format::Jsonl => arguments.command.as_json(),
                    Format::Yaml => {
                        let problem = "measurements are printed as tables or JSON; pass -o json";
                        return Err(Failure::Refused(problem.to_owned()));
                    }
                };
                segno_bench::run(&command).await.map_err(|error| Failure::Measuring(format!("{error:#}")))
            }
            Command::Version => version::run(output),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut invocation::command(self.name), self.name, &mut script);
                output::write(&script)
            }
        }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The settings of this program, to which others are added.
    pub(crate) fn layers(&self) -> Result<Layers, Failure> {
        let mut layers = Layers::default();
        let set = |layers: &mut Layers| -> Result<(), SettingsError> {
            for (setting, value) in &self.settings {
                layers.set(setting, value, Origin::Program)?;
            }
            Ok(())
        };
        set(&mut layers).map_err(config::refused)?;
        Ok(layers)
    }

    /// Whether servers run code of this program.
    pub(crate) fn has_code(&self) -> bool {
        self.registry.is_some() || !self.functions.is_empty()
    }

    /// Adds the code of this program to a server.
    pub(crate) fn add_code(self, mut server: ServerBuilder) -> ServerBuilder {
        if let Some(registry) = self.registry {
            server = server.registry(registry);
        }
        self.functions.into_iter().fold(server, |server, add| server.functions(add))
    }
}

/// Adds what `segno dev` has to play with.
pub(crate) fn add_samples(server: ServerBuilder) -> ServerBuilder {
    server.registry(samples::registry()).functions(samples::functions)
}

fn finished(outcome: Result<(), Failure>, wording: &Wording, format: Format) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.report(wording, format));
            // Not by returning: that would wait for work that cannot be dropped.
            std::process::exit(failure.exit_code().into())
        }
    }
}
