//! Programs: what an orchestration does, as data, and what must come of it.

use serde::{Deserialize, Serialize};

use crate::seeded::Random;

/// How an attempt of an activity goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trouble {
    /// It succeeds.
    None,
    /// The first attempts fail.
    Fails(u32),
    /// The first attempt hangs until its timeout.
    HangsOnce,
    /// Every attempt hangs; the deadline of the call ends it.
    Hangs,
}

/// A call of an activity or of an inline step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Unique within the program and all its children; also the result.
    pub key: i64,
    /// Attempts in all.
    pub attempts: u32,
    /// How they go.
    pub trouble: Trouble,
    /// How long a good attempt takes.
    pub takes_ms: u64,
    /// Session that it is bound to.
    pub session: Option<u64>,
}

impl Call {
    /// The result: the key, or its negative when all attempts fail.
    pub fn value(&self) -> i64 {
        let fails = match self.trouble {
            Trouble::None => false,
            Trouble::Fails(times) => times >= self.attempts,
            Trouble::HangsOnce => self.attempts < 2,
            Trouble::Hangs => true,
        };
        if fails { -self.key } else { self.key }
    }
}

/// One step of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Call an activity.
    Activity(Call),
    /// Run an inline step.
    Inline(Call),
    /// Wait.
    Sleep(u64),
    /// Wait for the signal `signal-<key>`, which carries the key.
    Signal(i64),
    /// Read the next message of the mailbox.
    Mailbox,
    /// Publish a status and set a label.
    Status(i64),
    /// Run a child and take its results; its failure is `-key`.
    Child {
        /// Names the child.
        key: i64,
        /// What it does.
        program: Box<Program>,
    },
    /// Start an instance and do not wait for it.
    Detached {
        /// Names the instance.
        key: i64,
        /// What it does.
        program: Box<Program>,
    },
    /// Run branches at the same time and take all results, in the order of the branches.
    Parallel(Vec<Vec<Step>>),
    /// Run branches at the same time; the second can only lose and is cancelled.
    Race(Vec<Step>, Loser),
}

/// What loses a race: something that takes far longer than any winner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loser {
    /// A timer of many days.
    Timer,
    /// A signal that nobody sends.
    Signal,
    /// An activity that hangs until it is cancelled.
    Activity(i64),
    /// A child that waits for a signal that nobody sends.
    Child(i64),
}

/// How a program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// With all its results.
    Complete,
    /// With a failure.
    Fail,
    /// It waits to be cancelled, cleans up with the activity of this key, and ends as cancelled.
    Cancelled(i64),
}

/// What an instance does: its executions, each a list of steps, and its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Steps by execution; between them the instance continues as new.
    pub executions: Vec<Vec<Step>>,
    /// How the last execution ends.
    pub ending: Ending,
}

/// What must come of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// These results.
    Completed(Vec<i64>),
    /// A failure of the application.
    Failed,
    /// A cancellation.
    Cancelled,
}

impl Program {
    /// The oracle: what must come of the program, whatever happens to its nodes.
    pub fn expected(&self) -> Expected {
        let mut results = Vec::new();
        let mut read = 0;
        for step in self.executions.iter().flatten() {
            expect(step, &mut results, &mut read);
        }
        match self.ending {
            Ending::Complete => Expected::Completed(results),
            Ending::Fail => Expected::Failed,
            Ending::Cancelled(_) => Expected::Cancelled,
        }
    }
}

fn expect(step: &Step, results: &mut Vec<i64>, read: &mut i64) {
    match step {
        Step::Activity(call) | Step::Inline(call) => results.push(call.value()),
        Step::Sleep(_) | Step::Status(_) | Step::Detached { .. } => {}
        Step::Signal(key) => results.push(*key),
        Step::Mailbox => {
            results.push(mailbox_value(*read));
            *read += 1;
        }
        Step::Child { key, program } => match program.expected() {
            Expected::Completed(values) => results.extend(values),
            Expected::Failed | Expected::Cancelled => results.push(-key),
        },
        Step::Parallel(branches) => branches.iter().flatten().for_each(|step| expect(step, results, read)),
        Step::Race(winner, _) => winner.iter().for_each(|step| expect(step, results, read)),
    }
}

/// The `n`th message of the mailbox, from 0.
pub fn mailbox_value(n: i64) -> i64 {
    1_000_000 + n
}

/// Makes programs.
#[derive(Debug)]
pub struct Generator {
    random: Random,
    last_key: i64,
    steps_left: u32,
}

impl Generator {
    /// A generator of programs with at most this many steps.
    pub fn new(random: Random, steps: u32) -> Self {
        Generator { random, last_key: 0, steps_left: steps }
    }

    /// A program for a root instance.
    pub fn root(&mut self) -> Program {
        let executions = 1 + self.random.below(3) * self.random.below(2);
        let executions = (0..executions).map(|_| self.steps(0, true)).collect();
        let ending = match self.random.below(8) {
            0 => Ending::Fail,
            1 | 2 => Ending::Cancelled(self.key()),
            _ => Ending::Complete,
        };
        Program { executions, ending }
    }

    fn child(&mut self, depth: u32) -> Program {
        let executions = if self.random.chance(1, 4) { 2 } else { 1 };
        let executions = (0..executions).map(|_| self.steps(depth, false)).collect();
        let ending = if self.random.chance(1, 5) { Ending::Fail } else { Ending::Complete };
        Program { executions, ending }
    }

    fn key(&mut self) -> i64 {
        self.last_key += 1;
        self.last_key
    }

    fn steps(&mut self, depth: u32, mailbox: bool) -> Vec<Step> {
        let count = 1 + self.random.below(if depth == 0 { 5 } else { 3 });
        (0..count).map_while(|_| self.step(depth, mailbox)).collect()
    }

    fn step(&mut self, depth: u32, mailbox: bool) -> Option<Step> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let nested = depth < 2;
        Some(match self.random.below(20) {
            0..=4 => Step::Activity(self.call(true)),
            5..=7 => Step::Inline(self.call(false)),
            8 | 9 => Step::Sleep(self.random.between(0, 20_000)),
            10 | 11 => Step::Signal(self.key()),
            12 if mailbox => Step::Mailbox,
            13 => Step::Status(self.key()),
            14 | 15 if nested => Step::Child { key: self.key(), program: Box::new(self.child(depth + 1)) },
            16 if nested => Step::Detached { key: self.key(), program: Box::new(self.child(2)) },
            17 | 18 if nested => {
                let branches = self.random.between(2, 4);
                Step::Parallel((0..branches).map(|_| self.steps(depth + 1, false)).collect())
            }
            19 => Step::Race(self.steps(2, false), self.loser()),
            _ => Step::Activity(self.call(true)),
        })
    }

    fn loser(&mut self) -> Loser {
        match self.random.below(4) {
            0 => Loser::Timer,
            1 => Loser::Signal,
            2 => Loser::Activity(self.key()),
            _ => Loser::Child(self.key()),
        }
    }

    fn call(&mut self, activity: bool) -> Call {
        let trouble = match self.random.below(10) {
            0 | 1 => Trouble::Fails(self.random.between(1, 3) as u32),
            2 if activity => Trouble::HangsOnce,
            3 if activity => Trouble::Hangs,
            _ => Trouble::None,
        };
        let takes_ms = match (trouble, self.random.below(6)) {
            (Trouble::None | Trouble::Fails(_), 0) => self.random.between(1, 90_000),
            (Trouble::None | Trouble::Fails(_), 1 | 2) => self.random.between(1, 1_000),
            _ => 0,
        };
        Call {
            key: self.key(),
            attempts: self.random.between(1, 4) as u32,
            trouble,
            takes_ms: if activity { takes_ms } else { takes_ms.min(15_000) },
            session: (activity && self.random.chance(1, 6)).then(|| self.random.below(2)),
        }
    }
}
