//! One part of a batch's work: waiting messages and due rows are folded by [`step`] and committed
//! at once.

use segno::store::RecordBatch;

use super::error::DriveError;
use super::holder::{Held, context};
use super::inbox::{self, BYTES_PER_PART, Waiting};
use super::outbox;
use super::post::timestamp;
use super::receipt::Receipt;
use crate::message::{Action, CallReport, CallResult, CallSeen, Message, Request};
use crate::step::limits::ROWS_PER_PART;
use crate::step::{Effect, Effects, Input, Verdict, next_part, step, wants};
use crate::telemetry;

/// Most rows that the messages of a part may touch, as an estimate, unless the first alone touches
/// more.
const MESSAGE_ROWS_PER_PART: usize = 2 * ROWS_PER_PART as usize;

/// Rows that a result touches: its step, its member, and the next step.
const ROWS_OF_RESULT: usize = 3;

/// How often rows may be loaded for one input. Each time brings what the time before showed to be
/// needed.
const MAX_LOADS: usize = 1_000;

/// How often rows are loaded for all inputs of a part together.
const PREFETCHES: usize = 3;

/// What a part came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Something was done.
    Made,
    /// There was nothing to do.
    Idle,
    /// There was something to do that changed nothing.
    Stuck,
}

/// One input and where it comes from.
#[derive(Debug)]
struct Source {
    input: Input,
    /// The record of the message, which is deleted once the message was applied.
    record: Option<MessageRecord>,
}

#[derive(Debug)]
struct MessageRecord {
    id: String,
    posted_at_ms: u64,
}

impl Source {
    fn inside(input: Input) -> Self {
        Source { input, record: None }
    }
}

/// What the inputs of a part lead to.
#[derive(Default)]
pub(super) struct Part {
    pub(super) commit: RecordBatch,
    pub(super) effects: Vec<Effect>,
    /// Bytes of the jobs to send.
    bytes: usize,
    /// Inputs without a record that were applied.
    reports: usize,
    /// Jobs whose calls have ended.
    pub(super) ended: Vec<String>,
    /// How late due rows were taken up, in milliseconds.
    pub(super) late_ms: Vec<u64>,
}

impl Part {
    /// Whether nothing was consumed so far.
    pub(super) fn has_consumed(&self) -> bool {
        self.reports > 0 || !self.commit.writes.is_empty()
    }
}

impl Held {
    /// Does one part. Messages were read by the caller, which waits for them.
    pub(super) async fn part(&mut self, messages: Vec<Waiting>) -> Result<Progress, DriveError> {
        let now_ms = self.now_ms();
        let mut part = Part::default();
        let sources = self.gather(messages, now_ms, &mut part).await?;
        if sources.is_empty() && !part.has_consumed() {
            return Ok(Progress::Idle);
        }
        self.prefetch(&sources, now_ms).await?;
        let mut sources = sources.into_iter();
        for source in sources.by_ref() {
            self.note_runbook(&source.input);
            let effects = self.apply(&source.input, now_ms).await?;
            let is_again = effects.verdict == Verdict::Again;
            self.take(source, effects, now_ms, &mut part);
            // The rest of a long list comes before all later messages.
            if is_again || part.bytes > BYTES_PER_PART {
                break;
            }
        }
        self.put_back(sources);
        self.commit(part, now_ms).await
    }

    /// The inputs of a part: messages, what this holder found out itself, due rows, and cursor
    /// work.
    async fn gather(
        &mut self,
        messages: Vec<Waiting>,
        now_ms: u64,
        part: &mut Part,
    ) -> Result<Vec<Source>, DriveError> {
        let mut sources = self.of_messages(messages, now_ms, part);
        let own = self.own.drain(..).map(|message| Source::inside(Input::Message(message)));
        sources.extend(own);
        let due = self.wakeups.due(&*self.services.store, &self.place, &mut self.rows, now_ms).await?;
        part.late_ms = due.iter().map(|(_, at_ms)| now_ms.saturating_sub(*at_ms)).collect();
        sources.extend(due.into_iter().map(|(key, _)| Source::inside(Input::Due(key))));
        if self.has_cursor_work(now_ms).await? {
            sources.push(Source::inside(Input::Continue));
        }
        Ok(sources)
    }

    /// As many messages as fit into a part. Messages that cannot be read are put off with a warning: they would block the inbox.
    fn of_messages(&self, messages: Vec<Waiting>, now_ms: u64, part: &mut Part) -> Vec<Source> {
        let rows_of_member = 1 + self.rows.phases().map(|phase| phase.steps as usize).sum::<usize>();
        let mut sources = Vec::with_capacity(messages.len());
        let mut touched = 0;
        for Waiting { id, bytes, posted_at_ms, message } in messages {
            let message = match message {
                Ok(message) => message,
                Err(unread) => {
                    let (batch, problem) = (self.place.id(), &unread.problem);
                    tracing::warn!(%batch, %id, bytes, %problem, "a message cannot be read; it is read again later");
                    metrics::counter!(telemetry::UNREADABLE_MESSAGES).increment(1);
                    part.commit.writes.push(inbox::put_off(id, unread, now_ms));
                    continue;
                }
            };
            touched += rows_of(&message, rows_of_member);
            if touched > MESSAGE_ROWS_PER_PART && !sources.is_empty() {
                break;
            }
            let record = Some(MessageRecord { id, posted_at_ms });
            sources.push(Source { input: Input::Message(message), record });
        }
        sources
    }

    async fn has_cursor_work(&mut self, now_ms: u64) -> Result<bool, DriveError> {
        for _ in 0..MAX_LOADS {
            let context = context(&self.services, &self.known, self.rows_per_part, now_ms);
            match next_part(&mut self.rows, &context) {
                Ok(part) => return Ok(part.is_some()),
                Err(missing) => self.load(missing.0).await?,
            }
        }
        Ok(false)
    }

    /// Loads what the inputs of a part need, all at once.
    async fn prefetch(&mut self, sources: &[Source], now_ms: u64) -> Result<(), DriveError> {
        for _ in 0..PREFETCHES {
            let context = context(&self.services, &self.known, self.rows_per_part, now_ms);
            let mut missing = Vec::new();
            for source in sources {
                missing.extend(wants(&mut self.rows, &source.input, &context));
            }
            if missing.is_empty() {
                return Ok(());
            }
            self.load(missing).await?;
        }
        Ok(())
    }

    async fn apply(&mut self, input: &Input, now_ms: u64) -> Result<Effects, DriveError> {
        let mut last = Vec::new();
        for _ in 0..MAX_LOADS {
            let context = context(&self.services, &self.known, self.rows_per_part, now_ms);
            match step(&mut self.rows, input, &context) {
                Ok(effects) => return Ok(effects),
                Err(missing) => {
                    last.clone_from(&missing.0);
                    self.load(missing.0).await?;
                }
            }
        }
        Err(DriveError::StillMissing(last))
    }

    /// Takes note of an input that was applied: its record goes, and its receipt tells what became
    /// of it.
    fn take(&mut self, source: Source, effects: Effects, now_ms: u64, part: &mut Part) {
        let Source { input, record } = source;
        let batch = self.place.id();
        match &effects.verdict {
            Verdict::Ignored(reason) => tracing::debug!(%batch, ?reason, "an input was ignored"),
            Verdict::Refused(reason) | Verdict::NotFound(reason) => {
                tracing::info!(%batch, %reason, "a request was refused");
            }
            Verdict::Applied | Verdict::Again => {}
        }
        let Input::Message(message) = input else { return part.effects(effects) };
        if effects.verdict != Verdict::Again {
            part.ended.extend(ended_job(&message).map(str::to_owned));
        }
        match record {
            Some(record) if effects.verdict != Verdict::Again => {
                let posted_at = timestamp(record.posted_at_ms);
                let receipt = match &message {
                    Message::Event(event) => inbox::key_of(&self.place, &record.id)
                        .map(|key| Receipt::of_event(event, key, posted_at)),
                    other => Receipt::waiting(other, posted_at),
                };
                if let Some(receipt) = receipt {
                    let receipt = receipt.answered(&effects.verdict, timestamp(now_ms));
                    let expect = segno::store::Expect::Anything;
                    part.commit.writes.push(receipt.write(&self.place, expect, now_ms));
                }
                if let Message::Result(CallResult { pool: Some(pool), job_id, .. }) = &message {
                    part.commit.writes.push(outbox::delete_job(&self.place, pool, job_id));
                }
                part.commit.writes.push(inbox::delete(record.id));
            }
            Some(_) => {}
            None if effects.verdict == Verdict::Again => self.own.push_back(message),
            None => part.reports += 1,
        }
        part.effects(effects);
    }

    /// Inputs that this part had no room for. Messages and due rows are stored; what this holder
    /// found out itself is kept.
    fn put_back(&mut self, sources: impl Iterator<Item = Source>) {
        for source in sources {
            if let (Input::Message(message), None) = (source.input, source.record) {
                self.own.push_back(message);
            }
        }
    }

    /// A batch that is yet to be created has its runbook in its first message.
    fn note_runbook(&mut self, input: &Input) {
        if let Input::Message(Message::Request(Request {
            action: Action::CreateBatch { runbook_name, .. },
            ..
        })) = input
            && self.rows.batch().is_none()
        {
            self.runbook.clone_from(runbook_name);
        }
    }
}

impl Part {
    fn effects(&mut self, effects: Effects) {
        for effect in &effects.list {
            if let Effect::Dispatch(job) = effect {
                self.bytes += job.params_json.len();
            }
        }
        self.effects.extend(effects.list);
    }
}

/// The job whose call has ended, if a message is about that.
fn ended_job(message: &Message) -> Option<&str> {
    match message {
        Message::Result(result) => Some(&result.job_id),
        Message::Call(CallReport { job_id, seen: CallSeen::Ended { .. }, .. }) => Some(job_id),
        _ => None,
    }
}

/// Rows that a message touches, as an estimate.
fn rows_of(message: &Message, rows_of_member: usize) -> usize {
    match message {
        Message::Request(Request { action, .. }) => match action {
            Action::PutMembers { members } => 2 * members.len(),
            Action::RemoveMembers { keys } => keys.len() * rows_of_member,
            Action::RetryMembers { batch_member_ids: Some(ids), .. } => ids.len() * rows_of_member,
            _ => rows_of_member,
        },
        Message::Event(_) => rows_of_member,
        Message::Result(_) | Message::Call(_) => ROWS_OF_RESULT,
        Message::Pool(_) => 1,
    }
}
