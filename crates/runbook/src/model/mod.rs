//! A batch driven in memory: store, clock, inbox and workers in one deterministic object. For tests: of
//! [`crate::step`] here, and of the driver, which has to come to the same rows.
//!
//! An input is applied to the loaded rows; [`Model::commit`] makes the rows durable and starts the calls; a
//! [`Model::crash`] drops what was not committed. Loading gives exactly what `wants` and
//! `step` ask for, so that reading anything else is found.
//!
//! | file | what |
//! |---|---|
//! | `calls.rs` | calls of workers and how they end |
//! | `view.rs` | looking at the rows |
//! | `check.rs` | what must be true after every commit |

mod calls;
mod check;
mod view;

pub use calls::{Call, Reply};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use segno_actions::schedule::Zones;

use crate::definition::Definition;
use crate::message::{Action, Message, Request};
use crate::rows::{MemberId, Missing, PhaseId, Row, RowKey, Rows, StepId, Table, Want, WorkKey};
use crate::step::{
    Context, Dispatch, Effect, Effects, IgnoredReason, Input, StepTemplates, Verdict, limits, next_part,
    step, wants,
};

/// How the workers answer a job.
pub type Workers = Box<dyn FnMut(&Dispatch) -> Reply>;

/// Loads that one input may need before something is wrong.
const MAX_LOADS: usize = 100;

/// Inputs at one moment after which something is wrong.
const MAX_INPUTS: usize = 10_000;

/// A batch driven in memory.
pub struct Model {
    /// The time.
    pub now: Timestamp,
    /// Most rows of one part of cursor work.
    pub rows_per_part: u32,
    /// Seconds that a call may be without a lease.
    pub dispatch_timeout_sec: u64,
    /// Inputs between two commits.
    pub inputs_per_commit: usize,
    /// Effects that were committed, oldest first.
    pub effects: Vec<Effect>,
    /// Reasons of requests that were refused.
    pub refusals: Vec<String>,
    /// Inputs that changed nothing, by reason.
    pub ignored: BTreeMap<String, u32>,
    /// Times that `wants` had not foreseen what an input needed.
    pub unforeseen: u32,
    /// Rows that were loaded for inputs.
    pub rows_loaded: u32,
    /// Whether everything is checked after every commit.
    pub checks: bool,
    definitions: BTreeMap<u32, Arc<Definition>>,
    store: BTreeMap<RowKey, Row>,
    due: BTreeSet<(Timestamp, RowKey)>,
    inbox: VecDeque<Message>,
    calls: BTreeMap<String, Call>,
    workers: Workers,
    next_ids: BTreeMap<Table, u64>,
    rows: Option<Rows>,
    uncommitted: Vec<Effect>,
    taken: Vec<Message>,
    requests: u32,
    /// Wave and index that were released at the last commit, by phase.
    released: BTreeMap<PhaseId, (u32, u32)>,
}

fn zones() -> &'static Zones {
    static ZONES: OnceLock<Zones> = OnceLock::new();
    ZONES.get_or_init(Zones::bundled)
}

impl Model {
    /// A batch that is yet to be created, at a time, with workers.
    pub fn new(now: Timestamp, workers: Workers) -> Self {
        Model {
            now,
            rows_per_part: limits::ROWS_PER_PART,
            dispatch_timeout_sec: limits::DISPATCH_TIMEOUT_SEC,
            inputs_per_commit: 1,
            effects: Vec::new(),
            refusals: Vec::new(),
            ignored: BTreeMap::new(),
            unforeseen: 0,
            rows_loaded: 0,
            checks: true,
            definitions: BTreeMap::new(),
            store: BTreeMap::new(),
            due: BTreeSet::new(),
            inbox: VecDeque::new(),
            calls: BTreeMap::new(),
            workers,
            next_ids: BTreeMap::new(),
            rows: None,
            uncommitted: Vec::new(),
            taken: Vec::new(),
            requests: 0,
            released: BTreeMap::new(),
        }
    }

    /// Makes a version of the runbook known.
    pub fn define(&mut self, version: u32, definition: Definition) {
        self.definitions.insert(version, Arc::new(definition));
    }

    /// Puts a message into the inbox.
    pub fn send(&mut self, message: Message) {
        self.inbox.push_back(message);
    }

    /// Puts a request into the inbox.
    pub fn request(&mut self, action: Action) {
        self.requests += 1;
        let key = format!("request-{}", self.requests);
        self.send(Message::Request(Request { key, by: None, action }));
    }

    /// Messages that wait, to reorder, repeat or drop them.
    pub fn inbox_mut(&mut self) -> &mut VecDeque<Message> {
        &mut self.inbox
    }

    /// Drops what was not committed, as a node that dies.
    pub fn crash(&mut self) {
        self.rows = None;
        self.uncommitted.clear();
        for message in self.taken.drain(..).rev() {
            self.inbox.push_front(message);
        }
    }

    /// Applies one input, loading what it needs.
    pub fn apply(&mut self, input: &Input) -> Effects {
        let mut rows = self.rows.take().unwrap_or_else(|| self.open());
        let mut effects = None;
        for _ in 0..MAX_LOADS {
            let missing = wants(&mut rows, input, &self.context());
            if !missing.is_empty() {
                self.load(&mut rows, &missing);
                continue;
            }
            match step(&mut rows, input, &self.context()) {
                Ok(done) => {
                    effects = Some(done);
                    break;
                }
                Err(Missing(missing)) => {
                    self.unforeseen += u32::from(missing.iter().any(|want| matches!(want, Want::Row(_))));
                    self.load(&mut rows, &missing);
                }
            }
        }
        self.rows = Some(rows);
        let effects = effects.expect("an input needs a bounded number of loads");
        match &effects.verdict {
            Verdict::Ignored(reason) => *self.ignored.entry(name_of(*reason)).or_default() += 1,
            Verdict::Refused(reason) | Verdict::NotFound(reason) => self.refusals.push(reason.clone()),
            Verdict::Applied | Verdict::Again => {}
        }
        self.uncommitted.extend(effects.list.iter().cloned());
        effects
    }

    /// Makes everything since the last commit durable, and starts and cancels calls.
    pub fn commit(&mut self) {
        let Some(mut rows) = self.rows.take() else { return };
        for row in rows.take_changes().rows {
            self.put(row);
        }
        rows.forget_unchanged();
        self.rows = Some(rows);
        self.taken.clear();
        let effects = std::mem::take(&mut self.uncommitted);
        if self.checks && self.has_batch() {
            self.check_starts(&effects);
        }
        for effect in effects {
            self.perform(&effect);
            self.effects.push(effect);
        }
        if self.checks {
            self.check();
        }
    }

    fn put(&mut self, row: Row) {
        let key = row.key().expect("rows of the model have keys");
        let due = row.due_at();
        if let Some(before) = self.store.insert(key.clone(), row).and_then(|before| before.due_at()) {
            self.due.remove(&(before, key.clone()));
        }
        if let Some(due) = due {
            self.due.insert((due, key));
        }
    }

    /// Applies everything that can be applied now: messages, due rows, cursor work.
    pub fn settle(&mut self) {
        let mut inputs = 0;
        while let Some(input) = self.next_input() {
            let effects = self.apply(&input);
            if let Input::Message(message) = input {
                if effects.verdict == Verdict::Again {
                    self.inbox.push_front(message);
                } else {
                    self.taken.push(message);
                }
            }
            inputs += 1;
            assert!(
                inputs < MAX_INPUTS,
                "the batch does not come to rest at {}: {:#?}",
                self.now,
                self.batch()
            );
            if inputs % self.inputs_per_commit == 0 {
                self.commit();
            }
        }
        self.commit();
        // Starting a call may have brought reports about calls.
        if !self.inbox.is_empty() {
            self.settle();
        }
    }

    /// The next input that can be applied now.
    pub fn next_input(&mut self) -> Option<Input> {
        if let Some(message) = self.inbox.pop_front() {
            return Some(Input::Message(message));
        }
        if let Some(key) = self.due_row() {
            return Some(Input::Due(key));
        }
        self.has_cursor_work().then_some(Input::Continue)
    }

    /// A row that is due. What is due may have changed since the last commit, so it is committed first.
    fn due_row(&mut self) -> Option<RowKey> {
        let (at, _) = self.due.first()?;
        if *at > self.now {
            return None;
        }
        self.commit();
        let (at, key) = self.due.first()?;
        (*at <= self.now).then(|| key.clone())
    }

    fn has_cursor_work(&mut self) -> bool {
        let mut rows = self.rows.take().unwrap_or_else(|| self.open());
        let part = next_part(&mut rows, &self.context()).expect("all versions are defined");
        self.rows = Some(rows);
        part.is_some()
    }

    /// Settles, and then moves the clock to the next moment at which something happens. Returns whether there
    /// is one.
    pub fn tick(&mut self) -> bool {
        self.settle();
        let ends = self.calls.values().filter_map(Call::next_at).min();
        let due = self.due.first().map(|(at, _)| *at);
        let Some(next) = [ends, due].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        self.end_calls();
        true
    }

    /// Runs until nothing happens any more, or a number of moments has passed. Returns whether it came to rest.
    pub fn run(&mut self, moments: usize) -> bool {
        for _ in 0..moments {
            if !self.tick() {
                return true;
            }
        }
        false
    }

    /// Runs until a time.
    pub fn run_until(&mut self, until: Timestamp) {
        loop {
            self.settle();
            let ends = self.calls.values().filter_map(Call::next_at).min();
            let due = self.due.first().map(|(at, _)| *at);
            let next = [ends, due].into_iter().flatten().min();
            match next {
                Some(next) if next <= until => self.now = self.now.max(next),
                _ => break,
            }
            self.end_calls();
        }
        self.now = self.now.max(until);
        self.settle();
    }

    fn context(&self) -> Context<'_> {
        Context {
            now: self.now,
            definitions: &self.definitions,
            templates: &StepTemplates,
            zones: zones(),
            rows_per_part: self.rows_per_part,
            dispatch_timeout_sec: self.dispatch_timeout_sec,
        }
    }

    /// The rows that are always loaded.
    fn open(&self) -> Rows {
        let mut rows = Rows::new(None, Vec::new(), Vec::new());
        for (key, row) in &self.store {
            if matches!(key, RowKey::Batch | RowKey::Phase(_) | RowKey::Work(WorkKey::Init(_))) {
                rows.load(row.clone());
            }
        }
        rows
    }

    fn load(&mut self, rows: &mut Rows, missing: &[Want]) {
        for want in missing {
            match want {
                Want::Row(key) => match self.store.get(key) {
                    Some(row) => {
                        self.rows_loaded += 1;
                        rows.load(row.clone());
                    }
                    None => rows.load_absent(key),
                },
                Want::Range { table, from, to } => {
                    for id in *from..*to {
                        let key = match table {
                            Table::BatchMembers => RowKey::Member(MemberId(id)),
                            _ => RowKey::Work(WorkKey::Step(StepId(id))),
                        };
                        if let Some(row) = self.store.get(&key) {
                            self.rows_loaded += 1;
                            rows.load(row.clone());
                        }
                    }
                    rows.load_absent_range(*table, *from..*to);
                }
                Want::Ids { table, count } => {
                    let next = self.next_ids.entry(*table).or_insert(1);
                    rows.ids().grant(*table, *next..*next + count);
                    *next += count;
                }
                Want::Definition(version) => unreachable!("version {version} is not defined"),
            }
        }
    }
}

fn name_of(reason: IgnoredReason) -> String {
    format!("{reason:?}")
}
