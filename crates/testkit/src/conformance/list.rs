//! All cases, by group. The one list that drives both the macro and [`cases`].

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};

use super::fixture::Env;
use super::harness::StoreHarness;

/// Where a case runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// In a current-thread runtime.
    One,
    /// In a runtime with several threads, because the case is about real contention.
    Many,
}

/// How many threads [`Threads::Many`] stands for.
const MANY_THREADS: usize = 4;

/// One rule of the store contract.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The group it belongs to: a file of this directory.
    pub group: &'static str,
    /// The rule, as a sentence.
    pub name: &'static str,
    /// Where it runs.
    pub threads: Threads,
    run: fn(Env) -> BoxFuture<'static, ()>,
}

/// Makes one test of every case of the store contract, in one module per group.
///
/// ```ignore
/// segno_testkit::conformance!(MyHarness::new());
/// ```
///
/// The expression makes a [`StoreHarness`](crate::conformance::StoreHarness) and is evaluated inside the case's
/// runtime, once per case.
#[macro_export]
macro_rules! conformance {
    ($harness:expr) => {
        fn conformance_harness() -> impl $crate::conformance::StoreHarness {
            $harness
        }
        $crate::__for_each_case! { [$crate::__conformance_tests] }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($($group:ident $threads:ident { $($name:ident,)* })*) => {
        $(mod $group {
            $(#[test]
            fn $name() {
                $crate::conformance::run(stringify!($group), stringify!($name), super::conformance_harness);
            })*
        })*
    };
}

macro_rules! case_table {
    ($($group:ident $threads:ident { $($name:ident,)* })*) => {
        &[$($(Case {
            group: stringify!($group),
            name: stringify!($name),
            threads: Threads::$threads,
            run: |env| Box::pin(super::$group::$name(env)),
        },)*)*]
    };
}

/// Every case of the store contract.
pub fn cases() -> &'static [Case] {
    crate::__for_each_case! { [case_table] }
}

/// Real time after which a case counts as stuck: the store hangs or spins. Only a failing case takes this long.
const CASE_LIMIT: Duration = Duration::from_secs(60);

/// Runs one case against a fresh store of the harness. Panics when the store breaks the rule.
pub fn run<H: StoreHarness + 'static>(group: &str, name: &str, harness: fn() -> H) {
    let case = cases().iter().find(|case| case.group == group && case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case {group}::{name}"));
    // On a thread of its own, because a store that spins never lets go of its runtime.
    let (done, outcome) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        case.runtime().block_on(async {
            let harness = harness();
            (case.run)(Env::new(harness.open().await)).await;
            harness.close().await;
        });
        // The receiver is gone only when the case was given up already.
        let _ = done.send(());
    });
    match outcome.recv_timeout(CASE_LIMIT) {
        Ok(()) => {}
        Err(RecvTimeoutError::Timeout) => panic!("the store is stuck: no end after {CASE_LIMIT:?}"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(()) => unreachable!("the case ends by saying so or by panicking"),
            Err(panic) => resume_unwind(panic),
        },
    }
}

impl Case {
    fn runtime(&self) -> Runtime {
        let mut builder = match self.threads {
            Threads::One => Builder::new_current_thread(),
            Threads::Many => Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(MANY_THREADS).enable_all().build();
        runtime.expect("a test process can start a runtime")
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_case {
    ([$($callback:tt)*]) => {
        $($callback)*! {
            atomicity One {
                a_turn_stores_all_its_parts,
                a_turn_with_an_unknown_token_stores_nothing,
                a_turn_with_an_expired_token_stores_nothing,
                a_turn_with_a_failed_record_expectation_stores_nothing,
                a_turn_with_an_existing_event_id_stores_nothing,
                an_existing_event_is_never_overwritten,
                a_conflicting_turn_takes_back_no_work,
                a_refused_turn_keeps_its_lock_and_can_be_corrected,
                an_empty_turn_consumes_its_messages,
                a_turn_consumes_only_what_was_fetched,
                a_consumed_message_never_comes_back,
                a_turn_is_committed_once,
                a_turn_appends_to_the_history,
                a_long_history_comes_back_in_order,
                a_turn_with_many_items_enqueues_each_of_them,
                a_turn_can_send_to_its_own_instance,
                metadata_that_is_not_given_stays,
                new_labels_replace_the_whole_set,
                a_turn_can_write_and_delete_records,
                an_append_outside_a_turn_creates_what_it_needs,
                an_append_of_an_existing_event_id_changes_nothing,
            }
            instance_locks One {
                a_locked_instance_is_passed_over,
                a_locked_instance_does_not_block_others,
                a_message_for_a_locked_instance_waits_for_the_lock,
                an_ack_frees_only_its_own_instance,
                an_abandon_frees_only_its_own_instance,
                tokens_strictly_increase,
                a_batch_holds_every_visible_message_of_its_instance,
                a_new_instance_comes_empty,
                a_known_instance_comes_with_its_state,
                an_enqueue_makes_no_instance,
                a_fetch_makes_no_instance,
                an_empty_turn_makes_no_instance,
                a_first_turn_without_metadata_makes_a_running_instance,
                a_message_may_come_before_the_start,
                the_time_of_a_fetch_is_the_stores_time,
                an_ended_instance_still_gets_its_messages,
                a_locked_instance_can_be_read,
                ids_that_share_a_beginning_are_different_instances,
            }
            lock_expiry_and_fencing One {
                an_instance_lock_holds_until_its_time,
                an_expired_instance_is_offered_again,
                an_expired_instance_comes_with_what_arrived_meanwhile,
                a_takeover_has_a_higher_token,
                a_stale_token_cannot_ack,
                a_stale_token_cannot_abandon,
                a_stale_token_cannot_renew,
                an_expired_token_cannot_ack_even_if_nobody_took_over,
                an_expired_token_cannot_renew,
                an_expired_token_cannot_abandon,
                an_unknown_token_holds_no_instance,
                a_renewed_instance_lock_outlives_its_first_time,
                a_renewed_instance_lock_ends_after_its_new_time,
                an_acked_or_abandoned_token_cannot_renew,
                an_abandoned_token_cannot_ack,
                a_lock_that_expired_twice_is_fenced_twice,
                a_work_lock_holds_until_its_time,
                an_expired_activity_is_offered_again,
                a_stale_token_cannot_finish_an_activity,
                a_stale_token_cannot_abandon_an_activity,
                a_stale_token_cannot_renew_an_activity,
                an_expired_token_cannot_finish_an_activity,
                an_unknown_token_holds_no_activity,
                a_renewed_work_lock_outlives_its_first_time,
                a_renewed_work_lock_ends_after_its_new_time,
                tokens_of_the_two_queues_are_not_exchangeable,
            }
            contention Many {
                one_of_many_fetches_gets_the_instance,
                one_of_many_fetches_takes_over_an_expired_lock,
                every_instance_is_fetched_exactly_once,
                every_activity_is_fetched_exactly_once,
                one_commit_of_a_turn_wins,
                one_end_of_an_activity_wins,
                one_of_many_starts_wins,
                one_of_many_claims_wins,
                one_of_many_appends_of_an_event_wins,
                a_counter_loses_no_increment,
                a_sum_over_two_records_is_kept_by_batches,
                no_message_is_lost_and_each_sender_keeps_its_order,
                turns_of_one_instance_make_one_history,
                tokens_are_never_given_twice,
                versions_of_records_are_never_given_twice,
                no_waiting_fetch_is_forgotten,
                no_waiting_worker_is_forgotten,
                a_session_goes_to_one_owner,
                a_deletion_and_a_turn_leave_nothing_behind,
                a_cancellation_and_a_completion_do_not_both_happen,
                counts_stay_right_under_load,
            }
            queue_order_and_visibility One {
                messages_come_oldest_first,
                message_ids_grow_with_every_enqueue,
                messages_of_a_turn_keep_their_order,
                order_survives_an_expired_lock,
                a_batch_is_in_queue_order_also_with_delayed_messages,
                a_delayed_message_is_not_early,
                a_delayed_message_comes_at_its_time,
                a_message_with_a_time_comes_at_its_time,
                a_message_whose_time_has_passed_comes_at_once,
                a_delay_wins_over_a_later_time_of_the_message,
                a_delay_wins_over_an_earlier_time_of_the_message,
                a_delay_of_zero_is_none,
                a_delayed_message_does_not_hold_back_others,
                a_turn_leaves_delayed_messages_in_the_queue,
                a_message_that_comes_due_under_a_lock_waits_for_it,
                a_timer_of_a_turn_comes_at_its_time,
                a_time_in_the_far_future_is_kept,
                activities_come_oldest_first,
                activities_of_a_turn_keep_their_order,
                a_delayed_activity_is_not_early,
                a_delayed_activity_comes_at_its_time,
                a_delayed_activity_does_not_hold_back_others,
                a_locked_activity_does_not_hold_back_others,
                the_clock_of_the_store_moves_on,
            }
            waiting_and_waking One {
                a_fetch_without_patience_answers_at_once,
                a_fetch_waits_out_its_poll_timeout,
                a_fetch_is_woken_by_an_enqueue,
                a_fetch_is_woken_by_a_turn_of_another_instance,
                a_fetch_is_woken_by_a_finished_activity,
                a_fetch_is_woken_by_a_record_commit,
                a_fetch_is_woken_by_an_abandon,
                a_fetch_is_woken_when_an_abandoned_batch_is_due,
                a_fetch_is_woken_by_the_ack_that_frees_an_instance,
                a_fetch_is_woken_by_the_time_of_a_delayed_message,
                a_fetch_is_woken_for_a_delayed_message_that_came_later,
                a_fetch_that_waits_for_a_later_time_is_woken_for_an_earlier_one,
                a_fetch_is_woken_by_the_expiry_of_a_lock,
                a_fetch_is_woken_for_what_came_under_an_expired_lock,
                every_waiting_fetch_is_woken_for_its_own_instance,
                one_turn_wakes_as_many_fetches_as_it_made_work_for,
                a_dropped_fetch_takes_nothing_with_it,
                a_fetch_waits_on_while_only_others_work_arrives,
                a_worker_waits_out_its_poll_timeout,
                a_worker_is_woken_by_an_enqueue,
                a_worker_is_woken_by_a_turn,
                a_worker_is_woken_by_a_record_commit,
                a_worker_is_woken_by_an_abandon,
                a_worker_is_woken_by_the_time_of_a_delayed_activity,
                a_worker_is_woken_by_the_expiry_of_a_lock,
                a_worker_is_woken_by_the_expiry_of_a_session,
                workers_of_one_owner_are_all_woken_for_its_session,
                an_owner_is_woken_for_new_work_of_its_session,
                every_waiting_worker_is_woken_for_its_own_activity,
                the_right_worker_is_woken_among_many,
                a_worker_without_sessions_waits_on_while_session_work_arrives,
                a_dropped_worker_fetch_takes_nothing_with_it,
            }
            watching One {
                a_watch_that_is_met_answers_at_once,
                a_watch_is_woken_by_the_end,
                every_terminal_state_ends_a_watch,
                continuing_as_new_is_not_the_end,
                a_watch_can_begin_before_its_instance,
                a_watch_ends_with_nothing_after_its_time,
                a_watch_without_patience_answers_at_once,
                a_watch_ignores_other_instances,
                a_watch_is_woken_by_a_custom_status,
                a_watch_of_the_custom_status_ends_with_the_instance,
                a_watch_of_the_revision_is_woken_by_any_commit,
                every_watch_of_an_instance_is_woken,
            }
            attempt_counts One {
                every_fetch_of_a_message_counts,
                an_expired_lock_counts,
                an_ignored_attempt_does_not_count,
                ignored_attempts_never_go_below_zero,
                a_batch_has_the_count_of_its_most_fetched_message,
                the_next_message_starts_its_own_count,
                a_message_that_came_under_a_lock_is_not_counted_for_it,
                a_renewal_does_not_count,
                an_abandoned_batch_comes_back_at_once,
                an_abandoned_batch_comes_back_after_its_delay,
                an_abandoned_batch_stays_ahead_of_later_messages,
                an_abandoned_batch_does_not_hold_back_new_messages,
                an_abandon_changes_nothing_else,
                an_abandon_works_once,
                every_fetch_of_an_activity_counts,
                an_expired_work_lock_counts,
                an_ignored_attempt_of_an_activity_does_not_count,
                ignored_attempts_of_an_activity_never_go_below_zero,
                a_renewal_of_an_activity_does_not_count,
                activities_are_counted_one_by_one,
                an_abandoned_activity_comes_back_unchanged,
                an_abandoned_activity_comes_back_after_its_delay,
                an_abandoned_activity_cannot_be_finished_by_its_old_token,
            }
            batched_fetch One {
                a_fetch_takes_as_many_instances_as_asked,
                a_fetch_answers_with_fewer_rather_than_wait,
                each_instance_of_a_batch_has_its_own_token,
                instances_of_a_batch_end_independently,
                each_instance_of_a_batch_comes_with_its_own_messages,
                each_instance_of_a_batch_comes_with_its_own_history,
                a_batch_of_activities_takes_as_many_as_asked,
                activities_of_a_batch_end_independently,
                a_history_that_the_runtime_holds_is_left_out,
                a_history_that_the_runtime_holds_only_in_part_is_loaded,
                a_runtime_gets_back_the_incarnation_that_it_gave_an_execution,
                a_runtime_is_asked_about_the_current_execution,
                each_instance_of_a_batch_is_asked_about,
                a_turn_of_a_resident_execution_is_a_turn_like_any_other,
            }
            keep_lock One {
                a_kept_lock_lets_the_holder_commit_more,
                each_part_is_visible_at_once,
                a_kept_lock_keeps_others_out,
                the_first_part_consumes_the_fetched_messages,
                what_arrives_between_parts_stays_for_the_next_turn,
                what_a_part_sends_to_its_own_instance_stays_for_the_next_turn,
                a_part_committed_twice_is_a_conflict,
                a_kept_lock_keeps_its_remaining_time,
                a_part_does_not_extend_the_lock,
                a_kept_lock_that_expired_is_fenced,
                a_kept_lock_can_be_renewed,
                a_refused_part_keeps_the_parts_before_it,
                a_part_may_begin_the_next_execution,
            }
            multi_execution One {
                each_execution_has_its_own_history,
                a_turn_names_the_execution_it_belongs_to,
                a_store_makes_up_no_execution,
                executions_are_listed_ascending,
                a_new_execution_starts_fresh,
                an_old_execution_keeps_its_end,
                a_turn_of_an_older_execution_does_not_make_it_current,
                the_end_of_an_older_execution_is_not_the_end_of_the_instance,
                an_existing_event_id_conflicts_in_its_own_execution_only,
                an_unknown_execution_reads_empty,
                what_belongs_to_the_instance_outlives_an_execution,
                a_new_execution_may_have_another_name_and_version,
                a_completion_for_an_old_execution_is_still_delivered,
                an_append_to_a_higher_execution_makes_it_current,
                executions_of_different_instances_do_not_mix,
            }
            cancellation One {
                a_queued_activity_is_taken_back,
                a_delayed_activity_is_taken_back,
                a_running_activity_cannot_be_finished_after_its_cancellation,
                a_running_activity_learns_of_its_cancellation_by_renewing,
                a_cancelled_activity_cannot_be_given_back,
                a_cancelled_activity_does_not_come_back_when_its_lock_expires,
                cancelling_what_is_unknown_or_finished_is_fine,
                only_the_named_activity_is_taken_back,
                many_activities_are_taken_back_in_one_turn,
                an_activity_that_a_turn_asks_for_and_takes_back_never_runs,
                a_turn_can_take_back_activities_of_another_instance,
                a_cancelled_activity_is_named_as_lost,
                finished_given_back_and_unknown_activities_are_lost,
                an_expired_activity_is_lost_also_after_a_takeover,
                asking_for_lost_work_changes_nothing,
                asking_for_lost_work_does_not_extend_a_lock,
                a_timer_that_was_taken_back_never_fires,
                a_timer_that_came_due_during_the_turn_is_taken_back,
                a_timer_that_was_fetched_and_cancelled_is_gone,
                taking_back_an_unknown_timer_is_fine,
                only_the_named_timer_is_taken_back,
                the_same_timer_of_another_instance_stays,
                the_same_timer_of_another_execution_stays,
                a_refused_turn_takes_back_no_timer,
            }
            start_guard One {
                the_first_start_is_accepted,
                a_second_start_is_refused_while_the_first_waits,
                a_second_start_is_refused_while_the_first_is_locked,
                a_second_start_is_refused_while_the_first_is_delayed,
                a_start_of_a_running_instance_is_refused,
                a_start_of_an_ended_instance_is_refused,
                a_start_is_refused_after_continuing_as_new,
                an_instance_without_a_name_can_be_started,
                other_messages_do_not_stand_in_the_way_of_a_start,
                a_message_without_a_guard_is_always_accepted,
                a_start_that_was_consumed_without_a_name_can_be_repeated,
                a_consumed_start_does_not_linger_behind_other_messages,
                starts_of_different_instances_do_not_meet,
                a_deleted_instance_can_be_started_again,
                a_turn_leaves_out_a_start_of_an_existing_instance,
                a_turn_leaves_out_a_start_that_waits_already,
                a_turn_with_the_same_start_twice_starts_once,
                a_turn_that_starts_an_absent_instance_enqueues_the_start,
                a_record_commit_leaves_out_a_start_of_an_existing_instance,
                a_record_commit_repeated_starts_once,
                a_delayed_start_comes_at_its_time,
                a_message_that_needs_its_instance_is_refused_when_there_is_none,
                a_message_that_needs_its_instance_reaches_one_that_runs,
                a_message_that_needs_its_instance_follows_a_start_that_waits,
                a_message_that_needs_its_instance_is_not_content_with_early_messages,
                a_message_that_needs_its_instance_is_refused_after_its_deletion,
            }
            work_item_acks One {
                a_finished_activity_leaves_the_queue,
                a_completion_reaches_its_instance,
                a_completion_may_be_for_another_instance,
                an_activity_without_a_completion_tells_nobody,
                an_activity_is_finished_once,
                a_delayed_completion_comes_at_its_time,
                records_are_written_with_the_completion,
                a_failed_record_expectation_finishes_nothing,
                a_lost_lock_writes_no_record,
                completions_keep_the_order_in_which_they_were_committed,
                the_same_activity_id_of_two_instances_is_two_activities,
                a_locked_activity_comes_with_everything_that_was_enqueued,
            }
            sessions One {
                a_fetch_without_sessions_passes_over_session_work,
                a_fetch_with_sessions_takes_plain_work_too,
                a_fetch_claims_a_free_session,
                a_claim_covers_work_that_comes_later,
                one_fetch_takes_several_items_of_the_session_it_claims,
                a_session_is_held_by_an_owner_not_by_a_slot,
                sessions_have_their_own_owners,
                anothers_session_does_not_block_work_behind_it,
                a_fetch_for_owned_sessions_claims_none,
                a_fetch_for_owned_sessions_takes_plain_work_too,
                a_session_is_held_until_its_time,
                an_expired_session_can_be_claimed_by_another,
                an_expired_session_is_not_owned,
                an_expired_session_leaves_the_locks_of_its_work_alone,
                an_abandoned_item_stays_with_its_session,
                a_session_outlives_its_finished_work,
                a_fetch_that_takes_nothing_claims_nothing,
                a_renewed_session_outlives_its_first_time,
                a_renewed_session_ends_after_its_new_time,
                sessions_of_all_named_owners_are_renewed_and_counted,
                an_expired_session_cannot_be_renewed,
                an_idle_session_is_not_renewed,
                renewing_an_item_keeps_its_session_from_being_idle,
                finishing_an_item_keeps_its_session_from_being_idle,
                fetching_an_item_keeps_its_session_from_being_idle,
                an_orphaned_session_is_swept,
                a_held_session_is_not_swept,
                a_session_with_work_is_not_swept,
                a_session_that_is_not_idle_is_not_swept,
                a_swept_session_can_be_used_again,
                work_of_a_swept_session_is_untouched,
            }
            tags One {
                the_default_takes_only_untagged_work,
                a_tag_takes_only_work_with_that_tag,
                several_tags_take_work_with_any_of_them,
                default_and_a_tag_takes_both,
                any_takes_everything,
                none_takes_nothing,
                work_that_does_not_match_blocks_nobody,
                passing_over_work_is_no_attempt,
                tags_are_compared_exactly,
                tags_of_a_turn_are_kept,
                work_of_several_tags_keeps_its_order,
                tags_and_sessions_must_both_fit,
            }
            capability_filter One {
                an_execution_in_the_range_is_fetched,
                an_execution_outside_the_range_is_passed_over,
                both_ends_of_a_range_belong_to_it,
                versions_are_compared_as_numbers,
                a_prerelease_comes_before_its_release,
                one_of_several_ranges_is_enough,
                an_execution_without_a_pin_passes_every_filter,
                an_empty_filter_takes_only_what_has_no_pin,
                no_filter_takes_everything,
                what_is_passed_over_blocks_nobody,
                a_pin_given_again_replaces_the_old_one,
                a_pin_belongs_to_one_execution,
                a_new_execution_without_a_pin_passes_every_filter,
                a_pin_holds_for_messages_that_wait_already,
                an_expired_lock_is_offered_only_to_who_can_replay_it,
            }
            custom_status One {
                a_status_that_was_never_set_is_not_there,
                an_unknown_instance_has_no_status,
                the_first_status_has_version_one,
                a_status_that_was_seen_is_not_returned_again,
                every_change_raises_the_version_by_one,
                the_same_status_again_is_a_change,
                a_turn_without_a_status_leaves_it_alone,
                a_cleared_status_has_a_version,
                an_empty_status_is_not_a_cleared_one,
                a_status_outlives_its_execution,
                a_refused_turn_changes_no_status,
                statuses_of_instances_are_their_own,
            }
            opaque_data One {
                garbage_comes_back_as_it_was,
                an_empty_body_comes_back_empty,
                a_large_body_comes_back_whole,
                json_comes_back_byte_by_byte,
                an_empty_output_is_not_an_absent_one,
                a_history_of_garbage_is_fetched_like_any_other,
                an_odd_message_blocks_no_other,
                an_odd_activity_blocks_no_other,
                an_odd_custom_status_comes_back_as_it_was,
                odd_instance_ids_are_kept_apart,
                odd_instance_ids_are_listed_and_deleted,
                odd_record_ids_are_kept_apart,
                odd_names_tags_sessions_and_labels_are_kept,
                a_separator_in_an_id_does_not_confuse_kinds_and_ids,
                an_event_id_may_be_any_number,
            }
            admin_reads One {
                an_empty_store_counts_nothing,
                a_store_says_what_it_is,
                what_is_unknown_is_not_found,
                an_unknown_instance_has_no_executions_and_no_children,
                an_instance_is_described_in_full,
                every_state_is_kept,
                an_instance_ends_when_it_gets_a_terminal_state,
                a_paused_instance_has_not_ended,
                times_are_the_stores_times,
                every_commit_raises_the_revision_by_one,
                an_execution_is_described_in_full,
                each_execution_has_its_own_times,
                histories_are_read_by_execution,
                an_execution_without_events_reads_empty,
                instances_are_listed_newest_first,
                instances_are_listed_by_state,
                each_state_is_counted,
                counts_follow_an_instance_through_its_states,
                executions_and_events_are_counted,
                a_refused_turn_is_not_counted,
                visible_messages_are_counted_by_queue,
                locked_messages_are_counted_apart,
                delayed_messages_are_counted_apart,
                an_expired_lock_is_not_counted_as_one,
                consumed_messages_are_not_counted,
                an_abandoned_message_is_counted_as_delayed_until_its_time,
            }
            instance_queries One {
                an_empty_store_gives_an_empty_last_page,
                no_criterion_finds_all_newest_first,
                a_row_is_the_full_description,
                instances_of_equal_age_come_in_id_order,
                a_later_turn_does_not_change_the_order,
                a_prefix_finds_ids_that_start_with_it,
                a_prefix_is_compared_byte_by_byte,
                a_tenant_is_a_prefix,
                a_prefix_may_end_in_the_highest_character,
                a_state_finds_instances_in_it_now,
                a_state_is_that_of_the_current_execution,
                a_name_finds_instances_of_one_orchestration,
                a_changed_name_is_found_by_the_new_one_only,
                a_label_finds_instances_that_carry_it_now,
                a_parent_finds_its_direct_children,
                a_span_of_time_has_its_start_but_not_its_end,
                all_criteria_must_hold,
                pages_have_no_gap_and_no_repeat,
                pages_of_a_criterion_have_no_gap_and_no_repeat,
                a_page_that_is_just_full_is_the_last,
                a_cursor_is_the_last_row_of_its_page,
                a_cursor_survives_the_deletion_of_its_row,
                an_instance_that_comes_later_does_not_disturb_the_pages,
                a_deleted_instance_is_found_by_nothing,
                an_instance_without_a_start_is_found_without_a_name,
            }
            deletion_and_hierarchy One {
                children_are_listed_oldest_first,
                a_child_knows_its_parent,
                a_tree_has_its_root_first_and_every_descendant,
                an_ended_instance_is_deleted,
                a_deletion_counts_what_it_removed,
                an_instance_that_has_not_ended_is_kept,
                force_deletes_a_running_instance,
                deleting_an_unknown_instance_is_not_found,
                a_tree_is_deleted_from_its_root,
                a_child_is_not_deleted_by_itself,
                a_running_descendant_keeps_the_whole_tree,
                a_child_that_is_not_in_the_list_stops_the_deletion,
                one_running_instance_stops_the_whole_list,
                unknown_ids_in_the_list_are_passed_over,
                an_id_that_occurs_twice_is_deleted_once,
                a_deleted_instance_leaves_nothing_in_the_queues,
                a_turn_in_flight_cannot_bring_a_deleted_instance_back,
                an_abandoned_turn_cannot_bring_its_messages_back,
                an_activity_in_flight_cannot_bring_a_deleted_instance_back,
                a_new_instance_of_the_same_id_receives_nothing_old,
                a_stale_token_does_not_fit_a_new_instance_of_the_same_id,
                a_deletion_leaves_other_instances_alone,
                a_deleted_child_leaves_its_parent_alone,
                a_watch_does_not_see_a_deleted_instance,
            }
            bulk_operations One {
                every_ended_instance_is_deleted,
                instances_that_have_not_ended_are_passed_over,
                only_the_listed_instances_are_deleted,
                an_empty_list_deletes_nothing,
                only_instances_that_ended_before_the_time_are_deleted,
                a_limit_takes_the_oldest_completions_first,
                all_criteria_of_a_bulk_deletion_must_hold,
                a_root_is_deleted_with_its_descendants,
                children_are_passed_over,
                a_root_with_a_running_descendant_is_passed_over,
                a_bulk_deletion_removes_queued_messages,
                every_instance_is_pruned,
                only_the_listed_instances_are_pruned,
                a_time_in_the_filter_prunes_ended_instances_only,
                options_of_a_bulk_prune_hold_for_each_instance,
            }
            pruning One {
                without_options_only_the_current_execution_stays,
                keeping_none_or_one_keeps_the_current_execution,
                the_newest_executions_are_kept,
                keeping_more_than_there_are_removes_nothing,
                the_current_execution_stays_even_when_it_has_ended,
                an_old_execution_that_runs_stays,
                only_executions_that_ended_before_the_time_go,
                the_time_itself_is_not_before_it,
                both_options_must_hold,
                a_pruned_execution_is_gone,
                what_is_kept_is_untouched,
                pruning_counts_what_it_removed,
                pruning_keeps_the_counts_of_the_store_right,
                an_unknown_instance_cannot_be_pruned,
                a_pruned_instance_goes_on,
            }
            records One {
                a_record_comes_back_as_it_was_written,
                an_unknown_record_is_absent,
                a_write_replaces_the_whole_record,
                versions_grow_over_all_records,
                a_version_never_comes_back_after_a_deletion,
                versions_are_returned_in_the_order_of_the_writes,
                a_write_that_expects_absence_needs_absence,
                a_write_that_expects_a_version_needs_that_version,
                a_write_that_expects_a_version_needs_a_record,
                a_write_that_expects_anything_always_works,
                a_deletion_removes_the_record,
                deleting_what_is_not_there_is_fine,
                a_deletion_that_expects_a_version_needs_that_version,
                a_deletion_that_expects_absence_needs_absence,
                a_batch_with_one_failed_expectation_changes_nothing,
                a_key_that_occurs_twice_is_invalid,
                an_empty_batch_does_nothing,
                a_batch_enqueues_its_work,
                a_refused_batch_enqueues_nothing,
                a_batch_can_enqueue_for_later,
                a_large_batch_is_one_commit,
                a_record_lives_until_its_time,
                an_expired_record_is_absent,
                an_expired_record_can_be_claimed_again,
                an_expired_record_has_no_version,
                deleting_an_expired_record_is_fine,
                a_write_gives_a_record_a_new_life,
                a_turn_writes_records_with_a_life,
            }
            record_listing One {
                records_are_listed_in_byte_order,
                a_prefix_selects_ids_that_start_with_it,
                a_prefix_has_no_wildcards,
                a_prefix_may_end_in_the_highest_character,
                a_prefix_is_compared_without_folding,
                a_kind_lists_only_its_own,
                a_page_ends_at_its_limit,
                pages_have_no_gap_and_no_repeat,
                a_page_continues_after_a_deleted_record,
                a_page_after_an_id_outside_the_prefix_stays_in_the_prefix,
                expired_records_are_not_listed,
                expired_records_do_not_fill_a_page,
                a_listed_record_is_the_whole_record,
            }
            due_records One {
                due_records_come_in_the_order_of_their_times,
                records_due_at_the_same_time_come_in_id_order,
                a_record_is_due_at_its_time_and_not_before,
                times_are_compared_as_numbers,
                the_store_decides_what_is_due_now,
                a_record_without_a_time_is_never_due,
                a_due_record_stays_due_until_it_is_written,
                a_deleted_record_is_not_due,
                an_expired_record_is_not_due,
                a_limit_takes_the_earliest,
                a_kind_is_due_by_itself,
                the_next_time_is_the_earliest_also_when_it_has_passed,
                a_due_record_is_the_whole_record,
                what_is_due_is_answered_at_once,
                a_question_about_a_named_time_does_not_wait,
                a_wait_ends_with_nothing_after_its_time,
                a_wait_is_woken_by_a_record_that_is_due,
                a_wait_is_woken_by_the_time_of_a_record,
                a_wait_is_woken_for_an_earlier_record_that_came_later,
                a_wait_is_woken_by_a_record_of_a_turn,
                a_wait_is_woken_by_a_record_of_a_finished_activity,
                every_wait_of_a_kind_is_woken,
                a_wait_goes_on_when_its_record_is_moved_away,
            }
        }
    };
}
