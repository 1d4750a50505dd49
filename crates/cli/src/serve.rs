//! `segno dev` and `segno serve`: the server.

use std::path::PathBuf;
use std::process::exit;

use segno_server::settings::{Origin, Settings};
use segno_server::{Server, ServerBuilder, WithoutKeys, bind, check_start, telemetry};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments::{DevArguments, ServeArguments};
use crate::config;
use crate::demo;
use crate::exit::Failure;
use crate::first_key;
use crate::log;
use crate::notify;
use crate::program::{Program, add_samples};
use crate::traces::Traces;

/// Exit code of a server that was told twice to stop.
const STOPPED_AT_ONCE: i32 = 130;

/// Verbs to try on a server with the samples.
const SAMPLE_VERBS: &[&str] = &[
    "start greet --id ada --input '{\"name\":\"Ada\",\"wait\":true}'",
    "show ada",
    "signal ada wave",
    "wait ada",
    "recurring create --every 5s --function greet --input '\"Ada\"'",
    "recurring list",
];

/// The pool `dev`, so that runbooks can call the samples without a worker.
const SAMPLE_POOL: &str = r#"{ transport = "local", functions = ["echo", "greet", "slow"] }"#;

/// A server to play with: the code of the program, or samples if it has none.
pub async fn dev(arguments: DevArguments, program: Program) -> Result<(), Failure> {
    let mut layers = program.layers()?;
    let data = format!("segno:{}", arguments.data.display());
    let flag = |name: &str| Origin::Flag(name.to_owned());
    if !program.has_code() {
        layers.set("pools.dev", SAMPLE_POOL, flag("dev")).map_err(config::refused)?;
    }
    layers.environment(std::env::vars()).map_err(config::refused)?;
    layers.set("store.url", &data, flag("--data")).map_err(config::refused)?;
    layers.set("auth.mode", "none", flag("dev")).map_err(config::refused)?;
    if let Some(listen) = &arguments.listen {
        layers.set("server.listen", listen, flag("--listen")).map_err(config::refused)?;
    }
    config::set(&mut layers, &arguments.set)?;
    let effective = layers.finish().map_err(config::refused)?;
    let (lines, settings) = (effective.lines(), effective.settings);
    let (name, has_code) = (program.name(), program.has_code());
    let is_plain = settings.server.tls_certificates.is_none();
    let has_demo = settings.server.ui && is_plain && !has_code && !arguments.without_demo;
    let add_code = move |server| if has_code { program.add_code(server) } else { add_samples(server) };
    let start = Start { settings, lines, first_key_file: None, without_keys: WithoutKeys::ThisMachine };
    run(start, add_code, |server| {
        let address = server.address();
        if has_demo {
            demo::begin(server);
            eprintln!(
                "\nOpen http://{address}/?tenant={} in a browser: orders come in every 15 seconds.",
                demo::TENANT
            );
        }
        eprintln!(
            "\nSegno is ready on http://{address} (API reference: http://{address}/docs). The data is in {}.",
            arguments.data.display()
        );
        let server = match address == Settings::default().server.listen {
            true => String::new(),
            false => format!(" --server http://{address}"),
        };
        eprintln!("\nTry in another terminal:");
        for verb in if has_code { &["list"] } else { SAMPLE_VERBS } {
            eprintln!("  {name} {verb}{server}");
        }
        eprintln!("\nStop it with Ctrl-C, or even with kill -9: on restart it resumes where it left off.\n");
    })
    .await
}

/// A server.
pub async fn serve(arguments: ServeArguments, program: Program) -> Result<(), Failure> {
    let effective = config::effective(program.layers()?, &arguments.settings)?;
    let (lines, settings) = (effective.lines(), effective.settings);
    let without_keys = if arguments.insecure { WithoutKeys::Anywhere } else { WithoutKeys::ThisMachine };
    let start = Start { settings, lines, first_key_file: arguments.first_key_file, without_keys };
    run(
        start,
        move |server| program.add_code(server),
        |server| {
            tracing::info!(address = %server.address(), "the server is ready");
        },
    )
    .await
}

/// What a server starts with.
struct Start {
    settings: Settings,
    /// Every setting with where it comes from.
    lines: Vec<(String, String, Origin)>,
    first_key_file: Option<PathBuf>,
    without_keys: WithoutKeys,
}

async fn run(
    start: Start,
    prepare: impl FnOnce(ServerBuilder) -> ServerBuilder,
    announce: impl FnOnce(&Server),
) -> Result<(), Failure> {
    let Start { settings, lines, first_key_file, without_keys } = start;
    let mut traces = Traces::start(&settings.telemetry)?;
    log::set_up(traces.layer.take())?;
    let mut signals = Signals::new()?;
    stop_at_second_signal()?;
    let metrics = telemetry::install();
    let metrics =
        metrics.map_err(|error| Failure::Serving(format!("metrics cannot be collected: {error}")))?;
    let url = settings.store_url().map_err(config::refused)?;
    for warning in config::check(&settings)? {
        tracing::warn!("{warning}");
    }
    // The port first: it costs nothing to give it back.
    let listener = bind(settings.server.listen).await.map_err(Failure::Serving)?;
    // Before there is a store: a start that is refused leaves none behind.
    check_start(&settings, &listener, without_keys).map_err(|error| Failure::Serving(error.to_string()))?;
    let store = url.open().await?;
    let mut builder = prepare(Server::builder(store, settings).metrics(metrics).setting_lines(lines));
    if without_keys == WithoutKeys::Anywhere {
        builder = builder.insecure();
    }
    #[cfg(feature = "amqp")]
    {
        builder = builder.brokers(std::sync::Arc::new(segno_bus_amqp::AmqpBrokers));
    }
    if let Some(current) = traces.current {
        builder = builder.current_trace(current);
    }
    let mut server = builder.start(listener).await.map_err(|error| Failure::Serving(error.to_string()))?;
    if let Some(key) = server.take_first_key()
        && let Err(failure) = first_key::hand_over(&key, first_key_file.as_deref(), &url)
    {
        // A key that nobody has must not keep the next start from making one.
        let revoked = server.revoke_first_key(&key).await;
        revoked.map_err(|error| {
            Failure::Serving(format!("{failure}; and the key cannot be revoked: {error}"))
        })?;
        server.shutdown().await;
        return Err(failure);
    }
    announce(&server);
    notify::tell(notify::State::Ready);
    signals.next().await;
    notify::tell(notify::State::Stopping);
    tracing::info!("stopping; a second signal stops at once");
    server.shutdown().await;
    traces.finish().await;
    tracing::info!("stopped");
    Ok(())
}

/// Ends the process at the second signal, whatever the server is busy with: on a thread with a runtime
/// of its own, so that work which blocks all threads of the server does not delay it, and neither does
/// the end of the server.
fn stop_at_second_signal() -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Serving(format!("signals cannot be heard: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let watch = move || {
        runtime.block_on(async {
            signals.next().await;
            signals.next().await;
        });
        tracing::warn!("stopped at once; other nodes, or the next start, take over what ran");
        exit(STOPPED_AT_ONCE)
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(failed)?;
    Ok(())
}

/// Signals to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::Serving(format!("signals cannot be heard: {error}")))
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
