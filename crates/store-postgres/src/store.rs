//! The store itself: opening it, its tasks, closing it.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use segno::ids::SystemIds;
use tokio::task::JoinHandle;

use crate::connection::Connector;
use crate::core::{Core, Statistics, closed};
use crate::error::OpenError;
use crate::exchanger::Exchanger;
use crate::options::{Migration, PostgresOptions};
use crate::reader::Reader;
use crate::{lookups, migrations, notifications, sweeper};

/// The shared store: many nodes, one PostgreSQL database.
///
/// Every node opens its own. It lives through restarts of the database: writes are tried again, with exactly one
/// effect, until they succeed or [`PostgresOptions::retry_for`] is over. It must be opened and used inside a tokio runtime
/// and is closed by [`PostgresStore::close`] or with its last handle.
pub struct PostgresStore {
    core: Arc<Core>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("options", &self.core.options).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the store at a URL, and makes or updates its schema.
    ///
    /// # Errors
    /// When the URL is wrong, the database cannot be reached or refuses, or the schema is of a newer build.
    pub async fn open(url: &str) -> Result<Arc<PostgresStore>, OpenError> {
        Self::open_with(PostgresOptions::from_url(url)?).await
    }

    /// Opens the store with settings, and makes or updates its schema as far as they allow it.
    ///
    /// # Errors
    /// As [`PostgresStore::open`]; when there is no store or one of an older build, and the
    /// settings forbid to create or upgrade it.
    pub async fn open_with(options: PostgresOptions) -> Result<Arc<PostgresStore>, OpenError> {
        let connector = Arc::new(Connector::for_statements(&options)?);
        let listening = Connector::for_listening(&options)?;
        let connection = connector.connect(None).await?;
        migrations::migrate(&connection, &options).await?;
        let ids = SystemIds::shared();
        let reader = Reader::new(Arc::clone(&connector), connection);
        let core = Core::new(options, reader, notifications::Outbox::new(ids.new_seed()));
        let mut tasks = vec![tokio::spawn(lookups::run(Arc::clone(&core)))];
        for _ in 0..core.options.exchanges_in_flight {
            let writer_id = ids.new_seed().cast_signed() & i64::MAX;
            let exchanger = Exchanger::new(Arc::clone(&core), Arc::clone(&connector), writer_id);
            tasks.push(tokio::spawn(exchanger.run()));
        }
        // A command that only reads leaves housekeeping to the servers.
        if core.options.migration != Migration::Never {
            tasks.push(tokio::spawn(sweeper::run(Arc::clone(&core))));
        }
        if let Some(connector) = listening {
            tasks.push(tokio::spawn(notifications::send(Arc::clone(&core))));
            tasks.push(tokio::spawn(notifications::listen(Arc::clone(&core), connector)));
        }
        Ok(Arc::new(PostgresStore { core, tasks: Mutex::new(tasks) }))
    }

    /// Closes the store, whoever else has a handle: every later call on this one fails with `Closed`. What is under way
    /// may or may not be done, as if the process had ended.
    pub fn close(&self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
        self.core.lookups.close();
        let mut waiting = self.core.waiting();
        waiting.is_closed = true;
        waiting.turns.fail(None, &closed("fetch_orchestration_items"));
        waiting.work.fail(None, &closed("fetch_work_items"));
        drop(waiting.drain());
    }

    /// What the store has done since it was opened.
    pub fn statistics(&self) -> Statistics {
        self.core.counts.read()
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.close();
    }
}
