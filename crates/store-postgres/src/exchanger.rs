//! A task that writes: it gathers what waits, sends it in one call, and hands out the answer. A process has one for each
//! exchange that it may have in flight, each with a connection and a row of `writer` of its own.
//!
//! **Invariant.** An exchange has a number, and is sent again under the same number until its outcome is known. The
//! database refuses to do a number twice and remembers what came of the last one, so a lost answer is asked for again
//! and nothing is done twice.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use segno::clock::{Clock, NEVER_MS, SystemClock, duration_ms, sleep, sleep_until, timeout};
use segno::store::{ErrorKind, LockedWorkItem, ProviderError};
use segno::telemetry;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use crate::answer::{Answer, LockedTurn};
use crate::columns::{Columns, LISTS, Parameter};
use crate::connection::{Connection, Connector};
use crate::core::{Core, Counts};
use crate::error::{Trouble, describe};
use crate::fetches::{Fetched, KEEP, SessionWish};
use crate::item::Item;
use crate::number::{limit, unsigned};
use crate::options::Pooler;
use crate::waiting::{Pending, Plan};

/// Before looking again at what another transaction had in its hands.
const RETRY_PAUSE: Duration = Duration::from_millis(3);

/// First pause between two tries to reach the database; doubled up to the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

/// How much longer than the database's own limit an exchange may take before its connection counts as lost.
const ANSWER_SLACK: Duration = Duration::from_secs(5);

/// How often an exchange that collides with others is tried before its items are sent one by one.
const MAX_COLLISIONS: usize = 8;

/// How many tries of an exchange have numbers of their own, so that one that was given up cannot pass for a later one.
const MAX_TRIES: i64 = 65_536;

/// What the process waits for, as a type of the schema, and how many columns it has.
const WISH: (&str, usize) = ("wish", 10);

/// Sends exchanges until the store is closed.
pub(crate) struct Exchanger {
    core: Arc<Core>,
    connector: Arc<Connector>,
    connection: Option<Connection>,
    sql: String,
    /// The same, read and planned by the server once for the connection; not where a pooler would mix connections up.
    statement: Option<Statement>,
    writer_id: i64,
    /// The number of the exchange times [`MAX_TRIES`], plus that of the try.
    exchange_no: i64,
    /// Whether somebody should look again soon because something was in another transaction's hands.
    retry_soon: bool,
}

/// Why an exchange did not work out.
#[derive(Debug)]
struct Failure {
    trouble: Trouble,
    text: String,
    reached: Reached,
}

/// How far a try got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// The items were not sent.
    Connecting,
    /// The items were sent, so the database may have committed them.
    Sent,
}

/// Whether the items of a plan may have been committed although every try failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// Nothing was sent, or the database has undone it.
    None,
    /// An answer was lost.
    AnswerLost,
}

impl Exchanger {
    pub(crate) fn new(core: Arc<Core>, connector: Arc<Connector>, writer_id: i64) -> Self {
        let sql = call(core.schema());
        Exchanger {
            core,
            connector,
            connection: None,
            sql,
            statement: None,
            writer_id,
            exchange_no: 0,
            retry_soon: false,
        }
    }

    /// Works until it is stopped.
    pub(crate) async fn run(mut self) {
        loop {
            self.poll_slowly();
            self.give_back_stale();
            let now_ms = self.core.clock().now_ms();
            let mut plan = {
                let mut waiting = self.core.waiting();
                let plan = waiting.plan(now_ms);
                if !plan.is_empty() {
                    // There may be enough for another one.
                    self.core.wake_exchanger(&waiting);
                }
                plan
            };
            if plan.is_empty() {
                self.rest().await;
                continue;
            }
            let load = std::mem::take(&mut plan.load);
            self.carry_out(plan).await;
            // The callers that were answered go first: the next exchange then has what follows, and fetches for free slots.
            // Until then this one counts as in flight, so that no other exchanger sends the first of it alone.
            tokio::task::yield_now().await;
            self.core.waiting().land(&load);
        }
    }

    /// Looks for what no notification told of, once in a while.
    fn poll_slowly(&self) {
        let now_ms = self.core.clock().now_ms();
        let mut waiting = self.core.waiting();
        if now_ms < waiting.next_slow_poll_ms {
            return;
        }
        waiting.next_slow_poll_ms =
            now_ms.saturating_add(duration_ms(self.core.outbox.poll_interval(&self.core.options)));
        waiting.turns.look();
        waiting.work.look();
        waiting.check_all();
        drop(waiting);
        self.core.due_waits.all();
    }

    /// Gives back locked work that no fetch has taken.
    fn give_back_stale(&self) {
        let now_ns = SystemClock.monotonic_ns();
        let (turns, work) = {
            let mut waiting = self.core.waiting();
            (waiting.turns.take_stale(now_ns), waiting.work.take_stale(now_ns))
        };
        self.give_back(&turns, &work);
    }

    fn give_back(&self, turns: &[LockedTurn], work: &[LockedWorkItem]) {
        if !turns.is_empty() {
            self.core.give_back(turns.iter().map(|turn| turn.lock_token), Item::GiveBackTurn);
        }
        if !work.is_empty() {
            self.core.give_back(work.iter().map(|item| item.lock_token), Item::GiveBackActivity);
        }
    }

    /// Waits until there is something to do. While other exchanges are in flight, they look when they are answered.
    async fn rest(&mut self) {
        let (next_ms, keeps_work) = {
            let waiting = self.core.waiting();
            let next_ms = if waiting.has_exchanges_in_flight() {
                NEVER_MS
            } else {
                waiting.next_look_ms().unwrap_or(NEVER_MS).min(waiting.next_slow_poll_ms)
            };
            (next_ms, waiting.turns.keeps_work() || waiting.work.keeps_work())
        };
        let stale = async {
            if !keeps_work {
                std::future::pending::<()>().await;
            }
            sleep(&SystemClock, KEEP).await;
        };
        let retry_soon = std::mem::take(&mut self.retry_soon);
        let pause = async {
            if !retry_soon {
                std::future::pending::<()>().await;
            }
            sleep(&SystemClock, RETRY_PAUSE).await;
        };
        tokio::select! {
            () = self.core.wake.notified() => self.retry_soon = retry_soon,
            () = sleep_until(self.core.clock(), next_ms) => self.retry_soon = retry_soon,
            () = stale => self.retry_soon = retry_soon,
            () = pause => {
                let mut waiting = self.core.waiting();
                waiting.turns.look();
                waiting.work.look();
            }
        }
    }

    /// Does a plan, however often it must be tried, and tells everybody what came of it.
    async fn carry_out(&mut self, mut plan: Plan) {
        self.exchange_no = (self.exchange_no / MAX_TRIES + 1) * MAX_TRIES;
        let started_ns = SystemClock.monotonic_ns();
        let (mut backoff, mut collisions, mut doubt) = (FIRST_BACKOFF, 0, Doubt::None);
        loop {
            let failure = match self.try_once(&mut plan).await {
                Ok(answer) => return self.hand_out(plan, answer),
                Err(failure) => failure,
            };
            tracing::debug!(?failure, exchange = self.exchange_no, "an exchange did not work out");
            match failure.trouble {
                Trouble::Collision if collisions < MAX_COLLISIONS => {
                    collisions += 1;
                    continue;
                }
                // The first try under this number was refused before it did anything: a new writer may do it.
                Trouble::UnknownWriter if doubt == Doubt::None => {
                    self.connection = None;
                    self.writer_id = segno::ids::SystemIds::shared().new_seed().cast_signed() & i64::MAX;
                    continue;
                }
                Trouble::BadValue
                | Trouble::Defect
                | Trouble::Refused
                | Trouble::Collision
                | Trouble::Overload
                    if plan.items.len() > 1 && doubt == Doubt::None =>
                {
                    return self.carry_out_alone(plan).await;
                }
                Trouble::Away => {
                    if failure.reached == Reached::Sent {
                        doubt = Doubt::AnswerLost;
                    }
                    self.connection = None;
                    // Nobody should wait for work from a database that is away without knowing.
                    self.fail_fetches(&mut plan, &failure);
                }
                _ => return self.refuse(plan, &failure, doubt),
            }
            let tried_for = SystemClock.monotonic_ns().saturating_sub(started_ns);
            if plan.items.is_empty() || Duration::from_nanos(tried_for) >= self.core.options.retry_for {
                if plan.items.is_empty() {
                    sleep(&SystemClock, backoff).await;
                }
                return self.refuse(plan, &failure, doubt);
            }
            sleep(&SystemClock, backoff).await;
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
        }
    }

    /// Sends the items of a plan one by one, so that a bad one fails alone.
    async fn carry_out_alone(&mut self, plan: Plan) {
        let Plan { items, turns, work, checks, load } = plan;
        for pending in items {
            let alone = Plan { items: vec![pending], ..Plan::default() };
            Box::pin(self.carry_out(alone)).await;
        }
        Box::pin(self.carry_out(Plan { items: Vec::new(), turns, work, checks, load })).await;
    }

    async fn try_once(&mut self, plan: &mut Plan) -> Result<Answer, Failure> {
        self.connect().await?;
        plan.items.retain(|pending| pending.ticket.send());
        self.exchange_no += 1;
        let Some(connection) = &self.connection else {
            return Err(not_sent(Trouble::Away, "no connection".to_owned()));
        };
        let columns = Columns::of(&plan.items);
        let fetch = FetchParameters::of(plan);
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&self.writer_id, Type::INT8), (&self.exchange_no, Type::INT8)];
        parameters.extend(columns.parameters());
        parameters.extend(fetch.parameters());
        parameters.push((&plan.checks, Type::TEXT_ARRAY));
        let counts = &self.core.counts;
        counts.exchanges.fetch_add(1, Ordering::Relaxed);
        let limit = self.core.options.statement_timeout + ANSWER_SLACK;
        let asked_ns = self.core.clock().monotonic_ns();
        let asked = ask(connection, &self.sql, self.statement.as_ref(), &parameters);
        let rows = match timeout(&SystemClock, limit, asked).await {
            Some(Ok(rows)) => rows,
            Some(Err(error)) => return Err(sent(Trouble::of(&error), describe(&error))),
            None => {
                return Err(sent(Trouble::Away, format!("no answer within {limit:?}")));
            }
        };
        if !plan.items.is_empty() {
            let took_ns = self.core.clock().monotonic_ns().saturating_sub(asked_ns);
            telemetry::store_committed(Duration::from_nanos(took_ns), plan.items.len());
        }
        Answer::read(&rows).map_err(|error| sent(Trouble::Defect, error.to_string()))
    }

    async fn connect(&mut self) -> Result<(), Failure> {
        if self.connection.as_ref().is_some_and(|connection| !connection.client().is_closed()) {
            return Ok(());
        }
        if self.connection.take().is_some() || self.exchange_no > MAX_TRIES {
            self.core.counts.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        let away = |text: String| not_sent(Trouble::Away, text);
        let connection = self.connector.connect(None).await.map_err(|error| away(error.to_string()))?;
        let schema = self.core.schema();
        let register = format!(
            "INSERT INTO {schema}.writer (writer_id, at_ms) VALUES ($1, {schema}.now_ms()) ON CONFLICT DO NOTHING"
        );
        let registered = connection.client().query_typed(&register, &[(&self.writer_id, Type::INT8)]).await;
        registered.map_err(failure)?;
        self.statement = None;
        if self.core.options.pooler == Pooler::Session {
            let types = parameter_types();
            let prepared = connection.client().prepare_typed(&self.sql, &types).await;
            self.statement = Some(prepared.map_err(failure)?);
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// Tells everybody what an exchange brought.
    fn hand_out(&mut self, plan: Plan, answer: Answer) {
        let core = &self.core;
        let counts = &core.counts;
        let changed = !plan.items.is_empty() || !answer.turns.is_empty() || !answer.activities.is_empty();
        Counts::add(&counts.commits, usize::from(changed));
        Counts::add(&counts.items, plan.items.len());
        Counts::add(&counts.bytes_out, plan.items.iter().map(|pending| pending.item.size()).sum());
        Counts::add(&counts.bytes_in, answer.bytes);
        Counts::add(&counts.repetitions, usize::from(answer.repeated));
        core.note_time(unsigned(answer.now_ms));
        self.retry_soon |= answer.retry_turns || answer.retry_activities;
        let local_now_ms = core.clock().now_ms();
        // Times of the database become local ones by their distance; what is due already was in other hands.
        let local = |at_ms: Option<i64>| {
            let distance_ms =
                u64::try_from(at_ms? - answer.now_ms).ok().filter(|distance_ms| *distance_ms > 0)?;
            Some(local_now_ms.saturating_add(distance_ms))
        };
        let is_due = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms <= answer.now_ms);
        self.retry_soon |= is_due(answer.next_turn_ms) || is_due(answer.next_activity_ms);
        let (next_turn_ms, next_activity_ms) = (local(answer.next_turn_ms), local(answer.next_activity_ms));

        let mut waiting = core.waiting();
        core.due_waits.records(plan.items.iter().flat_map(|pending| pending.item.due_records()));
        core.outbox.note(&plan.items, &answer.outcomes, &waiting);
        for (pending, _) in plan.items.iter().zip(&answer.outcomes).filter(|(_, outcome)| **outcome == 0) {
            // The watch may have begun, and an exchange may have looked at the instance, while this one was in flight.
            waiting.check_after(pending, &plan.checks);
        }
        answer_items(plan.items, &answer.outcomes, |pending| {
            let ends_lock = !matches!(pending.item, Item::RenewTurn { .. } | Item::RenewActivity { .. });
            if let Some(token) = pending.item.token().filter(|_| ends_lock) {
                waiting.forget_lock(token);
            }
        });
        waiting.remember_locks(answer.locks);
        let at_ns = SystemClock.monotonic_ns();
        let mut unwanted_turns = answer.turns;
        if let Some(plan) = &plan.turns {
            let fetched = Fetched { items: unwanted_turns, next_look_ms: next_turn_ms, at_ns };
            unwanted_turns = waiting.turns.hand_out(plan, fetched);
        }
        let mut unwanted_work = answer.activities;
        if let Some(plan) = &plan.work {
            let fetched = Fetched { items: unwanted_work, next_look_ms: next_activity_ms, at_ns };
            unwanted_work = waiting.work.hand_out(plan, fetched);
        }
        for info in &answer.instances {
            waiting.watches.answer(info);
        }
        drop(waiting);
        self.give_back(&unwanted_turns, &unwanted_work);
    }

    /// Tells everybody in a plan that it did not work out.
    fn refuse(&mut self, mut plan: Plan, failure: &Failure, doubt: Doubt) {
        self.fail_fetches(&mut plan, failure);
        for pending in plan.items {
            let error = failure.at(pending.item.operation(), doubt);
            if let Some(answer) = pending.answer {
                let _gone = answer.send(Err(error));
            }
        }
    }

    /// Tells whoever waits for work that there is none to be had, and looks at watched instances again later.
    fn fail_fetches(&mut self, plan: &mut Plan, failure: &Failure) {
        let mut waiting = self.core.waiting();
        if let Some(turns) = plan.turns.take() {
            let error = failure.trouble.at("fetch_orchestration_items", failure.text.clone());
            waiting.turns.fail(Some(&turns), &error);
        }
        if let Some(work) = plan.work.take() {
            let error = failure.trouble.at("fetch_work_items", failure.text.clone());
            waiting.work.fail(Some(&work), &error);
        }
        for instance in plan.checks.drain(..) {
            waiting.check(&instance);
        }
    }
}

impl Failure {
    /// The error of a write, which tells whether the write may have been done.
    fn at(&self, operation: &'static str, doubt: Doubt) -> ProviderError {
        if doubt == Doubt::AnswerLost {
            return Trouble::Away.at(operation, self.text.clone());
        }
        let error = self.trouble.at(operation, self.text.clone());
        match (self.trouble, self.reached) {
            (_, Reached::Connecting)
            | (Trouble::Collision | Trouble::Overload | Trouble::UnknownWriter, Reached::Sent) => {
                error.nothing_changed()
            }
            _ => error,
        }
    }
}

/// Sends an exchange.
async fn ask(
    connection: &Connection,
    sql: &str,
    statement: Option<&Statement>,
    parameters: &[Parameter<'_>],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    match statement {
        None => connection.client().query_typed(sql, parameters).await,
        Some(statement) => {
            let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|(value, _)| *value).collect();
            connection.client().query(statement, &values).await
        }
    }
}

/// A statement before the exchange failed.
fn failure(error: tokio_postgres::Error) -> Failure {
    not_sent(Trouble::of(&error), describe(&error))
}

fn not_sent(trouble: Trouble, text: String) -> Failure {
    Failure { trouble, text, reached: Reached::Connecting }
}

fn sent(trouble: Trouble, text: String) -> Failure {
    Failure { trouble, text, reached: Reached::Sent }
}

/// The types of all parameters.
fn parameter_types() -> Vec<Type> {
    let plan = Plan::default();
    let (columns, fetch) = (Columns::default(), FetchParameters::of(&plan));
    let of = |parameters: &[Parameter<'_>]| parameters.iter().map(|(_, sql_type)| sql_type.clone()).collect();
    let lists: Vec<Type> = of(&columns.parameters());
    let wish: Vec<Type> = of(&fetch.parameters());
    [vec![Type::INT8, Type::INT8], lists, wish, vec![Type::TEXT_ARRAY]].concat()
}

/// The statement: the writer, the number, the lists, the wish, the watched instances.
fn call(schema: &str) -> String {
    let mut sql = format!("SELECT * FROM {schema}.exchange($1, $2");
    let mut number = 2;
    for (list, columns) in LISTS.iter().chain([&WISH]) {
        let places: Vec<String> = (1..=*columns).map(|place| format!("${}", number + place)).collect();
        number += columns;
        // Writing to a string cannot fail.
        let _ = write!(sql, ", ROW({})::{schema}.{list}", places.join(", "));
    }
    let _ = write!(sql, ", ${})", number + 1);
    sql
}

/// Sends each item its outcome. Outcomes of items come first, then versions of all records.
fn answer_items(items: Vec<Pending>, outcomes: &[i64], mut done: impl FnMut(&Pending)) {
    let mut versions = outcomes.iter().skip(items.len());
    for (place, pending) in items.into_iter().enumerate() {
        let its_versions: Vec<u64> = versions
            .by_ref()
            .take(pending.item.records().len())
            .map(|version| version.cast_unsigned())
            .collect();
        let outcome = match outcomes.get(place) {
            Some(0) => Ok(its_versions),
            Some(&refused) => Err(pending.item.refusal(refused)),
            None => Err(ProviderError::new(
                ErrorKind::Internal,
                pending.item.operation(),
                "the database did not say what came of it; please report this",
            )),
        };
        if outcome.is_ok()
            && !matches!(&pending.item, Item::Turn(turn) if turn.after == segno::store::AfterAck::KeepLock)
        {
            done(&pending);
        }
        if let Some(answer) = pending.answer {
            // Whoever went away meanwhile does not want to know.
            let _gone = answer.send(outcome);
        }
    }
}

/// The parameters of an exchange that say what to fetch.
struct FetchParameters<'a> {
    turns: i32,
    turn_ms: i64,
    pin_min: Option<&'a Vec<String>>,
    pin_max: Option<&'a Vec<String>>,
    activities: i32,
    activity_ms: i64,
    lanes: Option<&'a Vec<String>>,
    owner: Option<&'a str>,
    session_ms: i64,
    claims: bool,
}

impl<'a> FetchParameters<'a> {
    fn of(plan: &'a Plan) -> Self {
        let count = |max_items: usize| i32::try_from(limit(max_items)).unwrap_or(i32::MAX);
        let pins = plan.turns.as_ref().and_then(|fetch| fetch.wish.pins.as_ref());
        let session: Option<&SessionWish> = plan.work.as_ref().and_then(|fetch| fetch.wish.session.as_ref());
        FetchParameters {
            turns: plan.turns.as_ref().map_or(0, |fetch| count(fetch.max_items)),
            turn_ms: plan.turns.as_ref().map_or(0, |fetch| fetch.wish.lock_ms),
            pin_min: pins.map(|(low, _)| low),
            pin_max: pins.map(|(_, high)| high),
            activities: plan.work.as_ref().map_or(0, |fetch| count(fetch.max_items)),
            activity_ms: plan.work.as_ref().map_or(0, |fetch| fetch.wish.lock_ms),
            lanes: plan.work.as_ref().and_then(|fetch| fetch.wish.lanes.as_ref()),
            owner: session.map(|session| session.owner.as_str()),
            session_ms: session.map_or(0, |session| session.lock_ms),
            claims: session.is_some_and(|session| session.claims),
        }
    }

    fn parameters(&self) -> [Parameter<'_>; 10] {
        fn of<T: ToSql + Sync>(value: &T, sql_type: Type) -> Parameter<'_> {
            (value, sql_type)
        }
        [
            of(&self.turns, Type::INT4),
            of(&self.turn_ms, Type::INT8),
            of(&self.pin_min, Type::TEXT_ARRAY),
            of(&self.pin_max, Type::TEXT_ARRAY),
            of(&self.activities, Type::INT4),
            of(&self.activity_ms, Type::INT8),
            of(&self.lanes, Type::TEXT_ARRAY),
            of(&self.owner, Type::TEXT),
            of(&self.session_ms, Type::INT8),
            of(&self.claims, Type::BOOL),
        ]
    }
}
