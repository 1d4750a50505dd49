//! Worker pools of runbooks: what a publisher has to know of them, and why dispatched steps wait for workers.

use std::collections::{BTreeMap, BTreeSet};

use segno_actions::functions::{CallName, FunctionError, PoolName};
use segno_actions::pools::{FoundPool, Transport};
use segno_api::batch::Explanation;
use segno_api::worker::Worker;
use segno_runbook::definition::{Definition, StepDefinition};
use segno_runbook::drive::RunbookError;
use segno_runbook::problem::Problem;
use segno_runbook::rows::{BatchId, PhaseRow, Row, RowKey, Table, Work};
use segno_runbook::yaml::Parsed;

use super::Tenant;
use super::pools::names;
use crate::problem::Refusal;

/// Most warnings about pools and functions of one runbook.
const MAX_WARNINGS: usize = 100;

/// Workers of which nothing was heard for longer are told of: nodes write down theirs every 10 seconds.
const SILENT_AFTER_MS: i64 = 15_000;

impl Tenant {
    /// Warnings about pools and functions that a runbook names and that cannot be called as things are.
    pub(super) async fn pool_warnings(&self, parsed: &Parsed) -> Result<Vec<String>, Refusal> {
        let mut warnings = Vec::new();
        let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
        let mut pools: BTreeMap<&str, Option<FoundPool>> = BTreeMap::new();
        for (path, step) in steps(parsed) {
            let (pool, function) = (step.worker_id.as_str(), step.function.as_str());
            let is_new_pool = !pools.contains_key(pool);
            if is_new_pool {
                pools.insert(pool, self.find_pool(pool).await?);
            }
            let problem = match pools.get(pool).and_then(Option::as_ref) {
                None if is_new_pool => {
                    let problem = format!(
                        "no pool {pool:?} is known; declare it in the settings, or start a worker that fetches for it"
                    );
                    Some((format!("{path}.worker_id"), problem))
                }
                Some(found) if seen.insert((pool, function)) => {
                    let problem = self.function_problem(found, function).await?;
                    problem.map(|problem| (format!("{path}.function"), problem))
                }
                _ => None,
            };
            if let Some((path, problem)) = problem {
                let at = parsed.places.position(&path);
                warnings.push(Problem::warning(at, path, problem).to_string());
            }
            if warnings.len() == MAX_WARNINGS {
                break;
            }
        }
        Ok(warnings)
    }

    async fn find_pool(&self, pool: &str) -> Result<Option<FoundPool>, Refusal> {
        let Ok(name) = PoolName::new(pool) else { return Ok(None) };
        match self.resources().pools.find(&self.owner(), &name).await {
            Ok(found) => Ok(Some(FoundPool::clone(&found))),
            Err(FunctionError::UnknownPool { .. }) => Ok(None),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Why a function cannot be called through a pool; none if it can, or if its name has placeholders.
    async fn function_problem(&self, found: &FoundPool, function: &str) -> Result<Option<String>, Refusal> {
        let Ok(name) = CallName::new(function) else { return Ok(None) };
        if let Err(error) = found.check_function(&name) {
            return Ok(Some(without_code(&error)));
        }
        if found.pool.transport != Transport::Local {
            return Ok(None);
        }
        let Ok(name) = function.to_lowercase().parse() else { return Ok(None) };
        match self.function(&name).await {
            Ok(_) => Ok(None),
            Err(error @ FunctionError::Unknown { .. }) => Ok(Some(without_code(&error))),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Adds to an explanation that dispatched steps wait for workers that are not there.
    pub(super) async fn explain_pools(
        &self,
        batch: BatchId,
        key: &RowKey,
        mut explanation: Explanation,
    ) -> Result<Explanation, Refusal> {
        if explanation.released_by.is_none() {
            return Ok(explanation);
        }
        let pools = self.pools_of_open_calls(batch, key).await?;
        if pools.is_empty() {
            return Ok(explanation);
        }
        let workers = self.workers_by_pool().await?;
        let (mut obstacles, mut silent) = (Vec::new(), Vec::new());
        for pool in &pools {
            match self.obstacle(pool, &workers).await? {
                Some(obstacle) => obstacles.push(obstacle),
                None => silent.extend(self.silence(pool, workers.get(pool).map_or(&[][..], Vec::as_slice))),
            }
        }
        match (key, obstacles.is_empty()) {
            (_, true) => {}
            (RowKey::Work(_), _) => explanation.why = format!("it {}", obstacles.join(" and ")),
            _ => explanation.why = format!("{}; it {}", explanation.why, obstacles.join(" and ")),
        }
        for sentence in silent {
            explanation.why = format!("{}; {sentence}", explanation.why);
        }
        Ok(explanation)
    }

    /// That no worker of a pool was heard of lately. It may be at work on a long call, or have died: that is not known
    /// before the lease of its call ends.
    fn silence(&self, pool: &str, workers: &[Worker]) -> Option<String> {
        let last = workers.iter().map(|worker| worker.last_seen_at).max()?;
        let now_ms = i64::try_from(self.app.clock.now_ms()).unwrap_or(i64::MAX);
        let is_silent = now_ms.saturating_sub(last.as_millisecond()) > SILENT_AFTER_MS;
        is_silent.then(|| match names(workers) {
            1 => format!("the worker of pool {pool:?} was last heard of at {last}"),
            many => format!("the last of {many} workers of pool {pool:?} was last heard of at {last}"),
        })
    }

    /// Why the calls of a pool are not run, if that is so.
    async fn obstacle(
        &self,
        pool: &str,
        workers: &BTreeMap<String, Vec<Worker>>,
    ) -> Result<Option<String>, Refusal> {
        let Some(found) = self.find_pool(pool).await? else {
            return Ok(Some(format!(
                "waits for a worker: pool {pool:?} is not declared, and no worker has announced it"
            )));
        };
        if let Some(pause) = self.pool_state(&found.name).await?.paused {
            let reason = pause.reason.map_or_else(String::new, |reason| format!(": {reason}"));
            return Ok(Some(format!("waits for pool {pool:?}, which is paused{reason}")));
        }
        let has_workers = workers.get(pool).is_some_and(|workers| !workers.is_empty());
        let needs_workers = found.pool.transport == Transport::Queue;
        Ok((needs_workers && !has_workers).then(|| format!("waits for a worker: pool {pool:?} has none")))
    }

    /// Pools of the calls that a row has open.
    async fn pools_of_open_calls(&self, batch: BatchId, key: &RowKey) -> Result<BTreeSet<String>, Refusal> {
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let refused = |error: RunbookError| self.refused(error);
        let mut pools = BTreeSet::new();
        match key {
            RowKey::Work(_) => {
                let row = runbooks.row(&owner, batch, key).await.map_err(refused)?;
                pools.extend(row.as_ref().and_then(work_of).filter(|work| work.is_called()).map(pool_of));
                return Ok(pools);
            }
            RowKey::Batch | RowKey::Phase(_) => {}
            RowKey::Member(_) | RowKey::MemberKey(_) => return Ok(pools),
        }
        let row = runbooks.batch(&owner, batch).await.map_err(refused)?;
        let phases = runbooks.phases(&owner, batch).await.map_err(refused)?;
        let is_asked = |phase: &&PhaseRow| match key {
            RowKey::Phase(id) => phase.id == *id,
            _ => true,
        };
        for phase in phases.iter().filter(is_asked).filter(|phase| phase.step_counts.dispatched > 0) {
            let definition = runbooks.definitions().get(&owner, &row.runbook_name, phase.runbook_version);
            let definition = definition.await.map_err(|error| refused(error.into()))?;
            let steps = definition.phases.get(phase.position as usize).map(|phase| &phase.steps);
            pools.extend(steps.into_iter().flatten().map(|step| step.worker_id.clone()));
        }
        if *key == RowKey::Batch {
            let range = (None, super::runbooks::MAX_INIT_STEPS);
            let inits = runbooks.rows(&owner, batch, Table::InitExecutions, range).await.map_err(refused)?;
            let rows = inits.iter().filter_map(|row| match row {
                segno_actions::Listed::Readable(row) => work_of(row),
                segno_actions::Listed::Unreadable(_) => None,
            });
            pools.extend(rows.filter(|work| work.is_called()).map(pool_of));
        }
        Ok(pools)
    }
}

fn pool_of(work: &Work) -> String {
    work.worker_id.clone()
}

fn work_of(row: &Row) -> Option<&Work> {
    match row {
        Row::Step(row) => Some(&row.work),
        Row::Init(row) => Some(&row.work),
        Row::Rollback(row) => Some(&row.work),
        Row::Removal(row) => Some(&row.work),
        _ => None,
    }
}

/// All steps of a runbook, each with its path in the document.
fn steps(parsed: &Parsed) -> impl Iterator<Item = (String, &StepDefinition)> {
    let Definition { init, phases, on_member_removed, rollbacks, .. } = &parsed.definition;
    let phases = phases.iter().enumerate().flat_map(|(index, phase)| {
        listed(format!("phases[{}].steps", parsed.places.phase_index(index)), &phase.steps)
    });
    let rollbacks = rollbacks.iter().flat_map(|(name, steps)| listed(format!("rollbacks.{name}"), steps));
    listed("init".to_owned(), init)
        .chain(phases)
        .chain(listed("on_member_removed".to_owned(), on_member_removed))
        .chain(rollbacks)
}

fn listed(path: String, steps: &[StepDefinition]) -> impl Iterator<Item = (String, &StepDefinition)> {
    steps.iter().enumerate().map(move |(index, step)| (format!("{path}[{index}]"), step))
}

/// The sentence of an error, without its code.
fn without_code(error: &FunctionError) -> String {
    let text = error.to_string();
    text.strip_suffix(&format!(" [{}]", error.code())).unwrap_or(&text).to_owned()
}
