//! The next execution of an instance that exists: one call of a function of the schema.

use segno::store::{NextExecution, ProviderError, UnendedExecution};
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::answer::{get, unreadable};
use crate::number::{bits, status, status_code, time, unsigned};

impl PostgresStore {
    pub(crate) async fn begin_next(&self, next: NextExecution) -> Result<(), ProviderError> {
        const OPERATION: &str = "begin_next_execution";
        let sql = format!(
            "SELECT * FROM {}.begin_next_execution($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            self.core().schema()
        );
        let (after, incarnation) = (bits(next.after_execution_id), bits(next.incarnation));
        let (end_status, end_output) = match &next.unended {
            UnendedExecution::Refuse => (None, None),
            UnendedExecution::End { status, output } => (Some(status_code(*status)), Some(output.as_ref())),
        };
        let (keys, values): (Vec<&String>, Vec<&String>) = next.labels.iter().unzip();
        let visible = next.start.visible_at_ms.map(time);
        let (instance, name) = (next.instance(), &*next.orchestration_name);
        let (version, body) = (next.orchestration_version.as_deref(), next.start.body.as_ref());
        let parameters = [
            (&instance as _, Type::TEXT),
            (&after as _, Type::INT8),
            (&incarnation as _, Type::INT8),
            (&end_status as _, Type::INT2),
            (&end_output as _, Type::BYTEA),
            (&name as _, Type::TEXT),
            (&version as _, Type::TEXT),
            (&keys as _, Type::TEXT_ARRAY),
            (&values as _, Type::TEXT_ARRAY),
            (&visible as _, Type::INT8),
            (&body as _, Type::BYTEA),
        ];
        // Doing it twice is doing it once, so it may be tried again when its connection broke.
        let rows = self.core().rows(OPERATION, &sql, &parameters).await?;
        let row = rows.first().ok_or_else(|| unreadable("a row is missing".to_owned()))?;
        match get::<i16>(row, 0)? {
            0 => {
                let mut waiting = self.core().waiting();
                waiting.turns.look();
                waiting.check(instance);
                drop(waiting);
                self.core().wake.notify_one();
                self.core().outbox.note_turn(instance);
                Ok(())
            }
            1 => Err(next.absent()),
            _ => {
                let found = status(OPERATION, i64::from(get::<i16>(row, 2)?))?;
                next.check(unsigned(get(row, 1)?), found)
            }
        }
    }
}
