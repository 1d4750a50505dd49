//! Which pools there are: those of the settings, which every namespace and tenant has, and those that workers of a
//! namespace and tenant have announced.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::store::{ErrorKind, Expect, ListRecords, RecordBatch, RecordWrite, Store};

use super::admission::{Admission, Headroom};
use super::combine::{Combiner, Standing, Waiting};
use super::pool::{AllowList, Pool, Transport};
use super::recent::Recent;
use super::resumes::{self, Resumes};
use super::stored::{Announced, POOL_KIND, POOL_STATE_KIND, Pause, PoolState, decode, record_id, write};
use crate::free_text;
use crate::functions::limits::{
    MAX_ANNOUNCED_BYTES, MAX_ANNOUNCED_POOLS, MAX_PAUSE_REASON_BYTES, MAX_POOL_FUNCTIONS,
};
use crate::functions::{CallName, FunctionError, PoolName, Scope};
use crate::listed::Listed;
use crate::moment::timestamp;

/// How often a change is tried again when others change the same pool. Each try that fails is a change that went ahead.
const MAX_TRIES: usize = 100;

/// Where a pool is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolOrigin {
    /// In the settings.
    Configured,
    /// By its workers.
    Announced,
}

/// A pool with its name and origin.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPool {
    /// Its name.
    pub name: PoolName,
    /// Where it is declared.
    pub origin: PoolOrigin,
    /// The pool.
    pub pool: Pool,
}

impl FoundPool {
    /// Checks that a function may be called through it.
    ///
    /// # Errors
    /// `function-not-in-pool`.
    pub fn check_function(&self, function: &CallName) -> Result<(), FunctionError> {
        if self.pool.functions.allows(function) {
            return Ok(());
        }
        let place = match self.origin {
            PoolOrigin::Configured => format!("pools.{}.functions in the settings", self.name),
            PoolOrigin::Announced => "the functions that its workers announce when they fetch".to_owned(),
        };
        Err(FunctionError::NotInPool { pool: self.name.to_string(), function: function.to_string(), place })
    }
}

/// The pools of a store. Cheap to clone.
#[derive(Clone)]
pub struct Pools {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    configured: Arc<BTreeMap<PoolName, Arc<FoundPool>>>,
    found: Recent<Arc<FoundPool>>,
    states: Recent<PoolState>,
    combiner: Combiner,
    resumes: Resumes,
}

impl Pools {
    /// The pools of a store, with those of the settings.
    ///
    /// # Errors
    /// `invalid-pool` with the pool and setting that is wrong, `bus-not-configured`.
    pub fn new(store: Arc<dyn Store>, configured: BTreeMap<PoolName, Pool>) -> Result<Self, FunctionError> {
        if let Some((name, _)) = configured.iter().find(|(_, pool)| pool.transport == Transport::Bus) {
            return Err(FunctionError::NoBus { pool: name.to_string() });
        }
        Pools::with_bus(store, configured)
    }

    /// The pools of a node that has a bus: some of those of the settings may be reached over it.
    ///
    /// # Errors
    /// `invalid-pool` with the pool and setting that is wrong.
    pub fn with_bus(
        store: Arc<dyn Store>,
        configured: BTreeMap<PoolName, Pool>,
    ) -> Result<Self, FunctionError> {
        for (name, pool) in &configured {
            pool.check().map_err(|error| match error {
                FunctionError::InvalidPool { field, problem } => {
                    FunctionError::InvalidPool { field: format!("pools.{name}.{field}"), problem }
                }
                other => other,
            })?;
        }
        let configured = configured.into_iter().map(|(name, pool)| {
            let found = FoundPool { name: name.clone(), origin: PoolOrigin::Configured, pool };
            (name, Arc::new(found))
        });
        let configured = Arc::new(configured.collect());
        let (found, states) = (Recent::default(), Recent::default());
        Ok(Pools {
            store,
            clock: SystemClock::shared(),
            configured,
            found,
            states,
            combiner: Combiner::default(),
            resumes: Resumes::default(),
        })
    }

    /// Another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Names of the pools that are reached over the bus. Only the settings declare such pools.
    pub fn over_bus(&self) -> impl Iterator<Item = &PoolName> {
        let over_bus = |found: &&Arc<FoundPool>| found.pool.transport == Transport::Bus;
        self.configured.values().filter(over_bus).map(|found| &found.name)
    }

    /// One pool. What was announced on another node a moment ago may not be seen yet.
    ///
    /// # Errors
    /// `unknown-pool` when there is none, `store` when the store cannot be read.
    pub async fn find(&self, scope: &Scope, name: &PoolName) -> Result<Arc<FoundPool>, FunctionError> {
        if let Some(pool) = self.configured.get(name) {
            return Ok(Arc::clone(pool));
        }
        let id = record_id(scope, name);
        let now_ms = self.clock.now_ms();
        if let Some(pool) = self.found.get(&id, now_ms) {
            return Ok(pool);
        }
        let unknown = || FunctionError::UnknownPool { pool: name.to_string() };
        let record = self.store.get_record(POOL_KIND, &id).await?.ok_or_else(unknown)?;
        let pool = Arc::new(announced(name, decode(&record)?));
        self.found.put(id, Arc::clone(&pool), record.body.len(), now_ms);
        Ok(pool)
    }

    /// Pools after a name, by name. The last name of a page is the cursor of the next.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<&PoolName>,
        limit: usize,
    ) -> Result<Vec<Listed<FoundPool>>, FunctionError> {
        let (id_prefix, after_id) = (scope.id_prefix(), after.map(|name| record_id(scope, name)));
        let request =
            ListRecords { kind: POOL_KIND, id_prefix: &id_prefix, after_id: after_id.as_deref(), limit };
        let mut page: BTreeMap<String, Listed<FoundPool>> = BTreeMap::new();
        for record in self.store.list_records(request).await? {
            let name = record.id.strip_prefix(&id_prefix).unwrap_or(&record.id).to_owned();
            let read =
                decode(&record).and_then(|stored| Ok(announced(&PoolName::new(name.as_str())?, stored)));
            page.insert(name.clone(), Listed::of(read, &name));
        }
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (name, pool) in self.configured.range((from, Bound::Unbounded)).take(limit) {
            page.insert(name.to_string(), Listed::Readable(FoundPool::clone(pool)));
        }
        Ok(page.into_values().take(limit).collect())
    }

    /// A worker of a pool says which functions it has. They may be called from now on, also when the worker is gone. The
    /// allow-list of a pool of the settings stays as it is there.
    ///
    /// # Errors
    /// `unknown-pool` when it names no function of a pool that nothing has declared, `invalid-pool` when there are too
    /// many, `store` when the store cannot be used.
    pub async fn announce(
        &self,
        scope: &Scope,
        name: &PoolName,
        worker: &str,
        functions: &[CallName],
    ) -> Result<(), FunctionError> {
        for _ in 0..MAX_TRIES {
            let found = match self.find(scope, name).await {
                Err(FunctionError::UnknownPool { .. }) if !functions.is_empty() => None,
                found => Some(found?),
            };
            let is_known = found.as_ref().is_some_and(|found| {
                found.origin == PoolOrigin::Configured
                    || functions.iter().all(|function| found.pool.functions.allows(function))
            });
            if is_known {
                return Ok(());
            }
            match self.add_functions(scope, name, worker, functions).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.found.remove(&record_id(scope, name))
                }
                added => return added,
            }
        }
        Err(contended(name))
    }

    async fn add_functions(
        &self,
        scope: &Scope,
        name: &PoolName,
        worker: &str,
        functions: &[CallName],
    ) -> Result<(), FunctionError> {
        let id = record_id(scope, name);
        let record = self.store.get_record(POOL_KIND, &id).await?;
        let (mut allowed, expect) = match &record {
            Some(record) => (decode::<Announced>(record)?.functions, Expect::Version(record.version)),
            None => (AllowList::default(), Expect::Absent),
        };
        allowed.extend(functions);
        if allowed.len() > MAX_POOL_FUNCTIONS {
            let problem = format!(
                "the workers of pool {name} announce {} functions, the limit is {MAX_POOL_FUNCTIONS}; declare the pool in \
                 the settings with functions = [\"*\"], or delete it to forget old ones",
                allowed.len()
            );
            return Err(FunctionError::invalid_pool("functions", problem));
        }
        let now_ms = self.clock.now_ms();
        let stored = Announced::new(allowed, timestamp(now_ms), worker);
        let (write, bytes) = write(POOL_KIND, id.clone(), expect, &stored)?;
        self.check_room(scope, &id, bytes).await?;
        self.commit(vec![write]).await?;
        self.found.put(id, Arc::new(announced(name, stored)), bytes, now_ms);
        Ok(())
    }

    /// Refuses an announced pool of so many bytes if its scope has as many as it may, or as many bytes of them.
    async fn check_room(&self, scope: &Scope, id: &str, bytes: usize) -> Result<(), FunctionError> {
        let (id_prefix, limit) = (scope.id_prefix(), MAX_ANNOUNCED_POOLS);
        let request = ListRecords { kind: POOL_KIND, id_prefix: &id_prefix, after_id: None, limit };
        let mut others = self.store.list_records(request).await?;
        others.retain(|record| record.id != id);
        if others.len() >= MAX_ANNOUNCED_POOLS {
            let problem = format!(
                "workers have announced {MAX_ANNOUNCED_POOLS} pools, which is the limit; delete some"
            );
            return Err(FunctionError::invalid_pool("pool", problem));
        }
        let all = others.iter().map(|record| record.body.len()).sum::<usize>() + bytes;
        if all > MAX_ANNOUNCED_BYTES {
            let problem = format!(
                "the pools that workers have announced would take {all} bytes with their functions, the limit of a tenant \
                 is {MAX_ANNOUNCED_BYTES}; delete pools, or declare them in the settings with functions = [\"*\"]"
            );
            return Err(FunctionError::invalid_pool("functions", problem));
        }
        Ok(())
    }

    /// Forgets a pool that was announced, and its state. A worker that fetches for it announces it anew.
    ///
    /// # Errors
    /// `unknown-pool` when there is none, `invalid-pool` when it is one of the settings.
    pub async fn forget(&self, scope: &Scope, name: &PoolName) -> Result<(), FunctionError> {
        if self.configured.contains_key(name) {
            let problem = format!("{name} is declared in the settings; remove [pools.{name}] there");
            return Err(FunctionError::invalid_pool("pool", problem));
        }
        let id = record_id(scope, name);
        // One that cannot be read can be removed all the same.
        if self.store.get_record(POOL_KIND, &id).await?.is_none() {
            return Err(FunctionError::UnknownPool { pool: name.to_string() });
        }
        let mut writes: Vec<RecordWrite> =
            [POOL_KIND, POOL_STATE_KIND].map(|kind| delete(kind, &id, Expect::Anything)).to_vec();
        // With its state it is not paused any more, and fetches wait for that.
        writes.push(resumes::resumed(&id));
        self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        self.found.remove(&id);
        self.states.remove(&id);
        Ok(())
    }

    /// The state of a pool; the default for one that was never paused or throttled.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn state(&self, scope: &Scope, name: &PoolName) -> Result<PoolState, FunctionError> {
        let record = self.store.get_record(POOL_STATE_KIND, &record_id(scope, name)).await?;
        record.as_ref().map_or_else(|| Ok(PoolState::default()), decode)
    }

    /// The state of a pool as it was at most a second ago, for loops that look often.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn recent_state(&self, scope: &Scope, name: &PoolName) -> Result<PoolState, FunctionError> {
        let (id, now_ms) = (record_id(scope, name), self.clock.now_ms());
        if let Some(state) = self.states.get(&id, now_ms) {
            return Ok(state);
        }
        let state = self.state(scope, name).await?;
        self.states.put(id, state.clone(), state.bytes(), now_ms);
        Ok(state)
    }

    /// Pauses a pool: its calls wait, and are not handed out. Calls under way go on. Pausing what is paused changes its reason
    /// and nothing else.
    ///
    /// # Errors
    /// `unknown-pool`, `invalid-pool` when the reason is too long or has control characters.
    pub async fn pause(
        &self,
        scope: &Scope,
        name: &PoolName,
        reason: Option<String>,
    ) -> Result<PoolState, FunctionError> {
        self.find(scope, name).await?;
        let text = reason.as_deref().unwrap_or_default();
        if let Some(problem) = free_text::problem(text, MAX_PAUSE_REASON_BYTES) {
            return Err(FunctionError::invalid_pool("reason", problem));
        }
        let at = timestamp(self.clock.now_ms());
        let pause = Pause { at, reason };
        self.change(scope, name, |state| {
            let at = state.paused.as_ref().map_or(pause.at, |paused| paused.at);
            state.paused = Some(Pause { at, ..pause.clone() });
        })
        .await
    }

    /// Resumes a pool. It is not throttled any more either.
    ///
    /// # Errors
    /// `unknown-pool`.
    pub async fn resume(&self, scope: &Scope, name: &PoolName) -> Result<PoolState, FunctionError> {
        self.find(scope, name).await?;
        self.change(scope, name, |state| {
            (state.paused, state.throttled_until_ms, state.throttles) = (None, None, 0);
        })
        .await
    }

    /// Waits until a pool that is paused or throttled may have been resumed, on whichever node, or until the time is up.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn wait_for_resume(
        &self,
        scope: &Scope,
        name: &PoolName,
        longest: Duration,
    ) -> Result<(), FunctionError> {
        let id = record_id(scope, name);
        if self.resumes.wait(&*self.store, &id, longest).await? {
            // It was read before it was resumed.
            self.states.remove(&id);
        }
        Ok(())
    }

    /// How many calls of a pool could be handed out now, by its state of at most a second ago.
    ///
    /// # Errors
    /// `store` when the store cannot be read.
    pub async fn headroom(&self, scope: &Scope, name: &PoolName) -> Result<Headroom, FunctionError> {
        let state = self.recent_state(scope, name).await?;
        let rate = self.configured.get(name).and_then(|found| found.pool.calls_per_second);
        if rate.is_none() && state.throttled_until_ms.is_none() {
            // Time does not matter then.
            return Ok(state.headroom(rate, 0));
        }
        Ok(state.headroom(rate, self.store.now_ms().await?))
    }

    /// How many of so many calls of a pool may be handed out now. They count from then on.
    ///
    /// # Errors
    /// `store` when the store cannot be used.
    pub async fn admit(
        &self,
        scope: &Scope,
        name: &PoolName,
        wanted: usize,
    ) -> Result<Admission, FunctionError> {
        let rate = self.configured.get(name).and_then(|found| found.pool.calls_per_second);
        let desk = self.combiner.desk(&record_id(scope, name));
        loop {
            let mut request = desk.request(wanted);
            let _deciding = desk.lock().await;
            match request.standing() {
                Standing::Answered(answer) => return answer,
                Standing::Lost => continue,
                Standing::Open => self.decide(scope, name, (desk.take(), rate)).await,
            }
            if let Standing::Answered(answer) = request.standing() {
                return answer;
            }
        }
    }

    /// Answers requests for calls of a pool by one change of its state.
    async fn decide(&self, scope: &Scope, name: &PoolName, (waiting, rate): (Vec<Waiting>, Option<f64>)) {
        let mut admissions = Vec::new();
        let mut admit = |state: &mut PoolState, now_ms: u64| {
            let admit = |request: &Waiting| state.admit(request.wanted, rate, now_ms);
            admissions = waiting.iter().map(admit).collect();
        };
        let changed = match self.store.now_ms().await {
            Ok(now_ms) => self.change(scope, name, |state| admit(state, now_ms)).await,
            Err(error) => Err(error.into()),
        };
        match changed {
            Ok(_) => {
                for (request, admission) in waiting.into_iter().zip(admissions) {
                    request.answer(Ok(admission));
                }
            }
            Err(error) => waiting.into_iter().for_each(|request| request.answer(Err(error.clone()))),
        }
    }

    /// Notes that a worker of a pool was throttled, and says for how long the pool rests.
    ///
    /// # Errors
    /// `store` when the store cannot be used.
    pub async fn throttled(
        &self,
        scope: &Scope,
        name: &PoolName,
        retry_after: Option<Duration>,
    ) -> Result<Duration, FunctionError> {
        match self.find(scope, name).await {
            // It was deleted meanwhile: what is noted of it could be neither listed nor deleted.
            Err(FunctionError::UnknownPool { .. }) => return Ok(Duration::ZERO),
            found => found?,
        };
        // Nodes share the state, so that they have to share the clock.
        let now_ms = self.store.now_ms().await?;
        let mut until_ms = now_ms;
        self.change(scope, name, |state| until_ms = state.throttle(retry_after, now_ms)).await?;
        Ok(Duration::from_millis(until_ms.saturating_sub(now_ms)))
    }

    /// Changes the state of a pool, and writes it if it is another one then.
    async fn change(
        &self,
        scope: &Scope,
        name: &PoolName,
        mut change: impl FnMut(&mut PoolState),
    ) -> Result<PoolState, FunctionError> {
        let id = record_id(scope, name);
        for _ in 0..MAX_TRIES {
            let record = self.store.get_record(POOL_STATE_KIND, &id).await?;
            let before: PoolState = record.as_ref().map_or_else(|| Ok(PoolState::default()), decode)?;
            let mut state = before.clone();
            change(&mut state);
            if state == before {
                // A pool that turned out to be paused or throttled is left alone from now on.
                self.states.put(id, state.clone(), state.bytes(), self.clock.now_ms());
                return Ok(state);
            }
            let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.version));
            let change = match state == PoolState::default() {
                true => delete(POOL_STATE_KIND, &id, expect),
                false => write(POOL_STATE_KIND, id.clone(), expect, &state)?.0,
            };
            let wake_up = resumes::wake_up(&id, &before, &state);
            match self.commit([change].into_iter().chain(wake_up).collect()).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                changed => {
                    changed?;
                    self.states.put(id, state.clone(), state.bytes(), self.clock.now_ms());
                    return Ok(state);
                }
            }
        }
        Err(contended(name))
    }

    async fn commit(&self, writes: Vec<RecordWrite>) -> Result<(), FunctionError> {
        self.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        Ok(())
    }
}

fn announced(name: &PoolName, stored: Announced) -> FoundPool {
    FoundPool { name: name.clone(), origin: PoolOrigin::Announced, pool: Pool::new(stored.functions) }
}

fn delete(kind: &str, id: &str, expect: Expect) -> RecordWrite {
    RecordWrite::Delete { kind: kind.to_owned(), id: id.to_owned(), expect }
}

fn contended(name: &PoolName) -> FunctionError {
    let message = format!("pool {name} was changed {MAX_TRIES} times meanwhile; try again");
    segno::store::ProviderError::new(ErrorKind::Unavailable, "commit_records", message).into()
}
