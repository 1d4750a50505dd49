//! Tests of `step` as a whole: named defects, table tests, and random sequences.
//!
//! The suites of the system that the protocol comes from, and where their cases are here:
//!
//! | suite | here |
//! |---|---|
//! | `RunbookParserTests`, `PhaseEvaluatorTests`, `CsvUploadServiceTests` | `tests/format`, under these names |
//! | `PhaseProgressionServiceTests` | `phase_progression_service.rs` |
//! | `ResultProcessorTests` | `result_processor.rs` |
//! | `PhaseDueHandlerTests`, `BatchInitHandlerTests` | `phase_due_handler.rs`, `batch_init_handler.rs` |
//! | `RetryCheckHandlerTests`, `DispatchTimeoutHandlerTests` | `retry_check_handler.rs`, `dispatch_timeout_handler.rs` |
//! | `SchedulerTimerFunctionTests` | `scheduler_timer_function.rs`; its queries are in `drive/tests/query.rs` |
//! | `MemberSynchronizerTests` | `member_synchronizer.rs`; the difference itself is in `source/difference.rs` |
//! | `ManualBatchServiceTests` | `manual_batch_service.rs` |

mod batch_init_handler;
mod defects;
mod dispatch_timeout_handler;
mod explained;
mod foreseen;
mod manual_batch_service;
mod member_synchronizer;
mod phase_due_handler;
mod phase_progression_service;
mod property;
mod random;
mod refusals;
mod result_processor;
mod retry_check_handler;
mod scenario;
mod scheduler_timer_function;
mod versions;
