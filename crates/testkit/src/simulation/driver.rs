//! The outside of a simulated world: starts the program, sends what it waits for, pauses, resumes and cancels it.
//!
//! Its calls meet faults too. It repeats them until it hears an answer, as a careful client does.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use segno::client::OnConflict;
use segno::clock::{self, Clock};
use segno::store::{ErrorKind, ExecutionStatus};
use segno::{Client, Code, Error};

use super::interpreter::{CANCEL_ME, INBOX, PROGRAM, State, child_id, signal};
use super::program::{Ending, Program, Step, mailbox_value};
use crate::seeded::Random;

/// Pause between two looks at an instance.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The outside.
#[derive(Clone)]
pub struct Driver {
    /// A client that meets faults.
    pub client: Client,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The root instance.
    pub root: String,
}

impl Driver {
    /// Does everything that the program needs, in random order and at random times.
    pub async fn drive(&self, program: &Program, random: &mut Random) {
        let mut signals = Vec::new();
        collect_signals(&self.root, program, &mut signals);
        let mut tasks: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
        for (instance, key) in signals {
            let mut random = random.fork();
            tasks.push(Box::pin(async move {
                self.wait(&mut random, 60_000).await;
                let send = || {
                    let id = format!("signal {key}");
                    self.client.signal(instance.clone(), signal(key), key).message_id(id).into_future()
                };
                self.insist(send).await;
                if random.chance(1, 3) {
                    // A sender that did not trust the answer.
                    self.insist(send).await;
                }
            }));
        }
        let (mail, pauses, starts) = (random.fork(), random.fork(), random.fork());
        tasks.push(Box::pin(self.send_mail(program, mail)));
        tasks.push(Box::pin(self.pause_and_resume(pauses)));
        tasks.push(Box::pin(self.start(program, starts)));
        if let Ending::Cancelled(_) = program.ending {
            tasks.push(Box::pin(self.cancel_when_asked()));
        }
        join_all(tasks).await;
    }

    async fn start(&self, program: &Program, mut random: Random) {
        self.wait(&mut random, 5_000).await;
        let delay = random.chance(1, 5).then(|| Duration::from_millis(random.below(20_000)));
        self.insist(|| {
            let start = self.client.start(PROGRAM, State::new(program.clone())).id(self.root.clone());
            let start = start.on_conflict(OnConflict::UseExisting);
            match delay {
                Some(delay) => start.delay(delay).into_future(),
                None => start.into_future(),
            }
        })
        .await;
    }

    async fn send_mail(&self, program: &Program, mut random: Random) {
        let steps = program.executions.iter().flatten();
        let messages = steps.filter(|step| matches!(step, Step::Mailbox)).count() as i64;
        for n in 0..messages {
            self.wait(&mut random, 20_000).await;
            self.insist(|| {
                let message = self.client.enqueue(self.root.clone(), INBOX, mailbox_value(n));
                message.message_id(format!("mail {n}")).into_future()
            })
            .await;
        }
    }

    async fn pause_and_resume(&self, mut random: Random) {
        for _ in 0..random.below(3) {
            self.wait(&mut random, 60_000).await;
            self.insist(|| self.client.pause(&self.root, "to see what happens")).await;
            self.wait(&mut random, 30_000).await;
            self.insist(|| self.client.resume(&self.root)).await;
        }
    }

    async fn cancel_when_asked(&self) {
        loop {
            clock::sleep(&*self.clock, LOOK_AGAIN).await;
            let Ok(instance) = self.client.instance(&self.root).await else { continue };
            let status: Option<String> =
                instance.custom_status.as_ref().and_then(|status| status.decode().ok());
            let asked = status.as_deref() == Some(CANCEL_ME);
            if instance.has_ended() {
                return;
            }
            if asked && instance.status == ExecutionStatus::Running {
                return self.insist(|| self.client.cancel(&self.root, "as asked")).await;
            }
        }
    }

    async fn wait(&self, random: &mut Random, most_ms: u64) {
        let ms = if random.chance(1, 2) { 0 } else { random.below(most_ms) };
        clock::sleep(&*self.clock, Duration::from_millis(ms)).await;
    }

    /// Repeats a call until it is answered. An instance that is not there or has ended is an answer.
    async fn insist<T, F: Future<Output = Result<T, Error>>>(&self, call: impl Fn() -> F) {
        while let Err(error) = call().await {
            match error.kind() {
                ErrorKind::Unavailable => clock::sleep(&*self.clock, LOOK_AGAIN).await,
                _ if matches!(error.code(), Code::InstanceEnded | Code::NotFound) => return,
                _ => panic!("a call of the driver was refused: {error}"),
            }
        }
    }
}

/// Every signal that a program and its children wait for, with the instance that does.
fn collect_signals(instance: &str, program: &Program, signals: &mut Vec<(String, i64)>) {
    program.executions.iter().flatten().for_each(|step| collect_from_step(instance, step, signals));
}

fn collect_from_step(instance: &str, step: &Step, signals: &mut Vec<(String, i64)>) {
    match step {
        Step::Signal(key) => signals.push((instance.to_owned(), *key)),
        Step::Child { key, program } | Step::Detached { key, program } => {
            collect_signals(&child_id(instance, *key), program, signals);
        }
        Step::Parallel(branches) => {
            branches.iter().flatten().for_each(|step| collect_from_step(instance, step, signals));
        }
        Step::Race(winner, _) => winner.iter().for_each(|step| collect_from_step(instance, step, signals)),
        _ => {}
    }
}
