//! What a task with a list has returned: the outputs of its items, in their order.

use crate::plan::expanded_key;
use crate::tables::TaskRow;

/// Keys of the items that the list of a task has now, in their order. Items of an earlier, longer list are left out.
pub fn item_keys(list: &TaskRow) -> impl Iterator<Item = String> + '_ {
    (0..list.added_count.unwrap_or_default()).map(|index| expanded_key(&list.task_key, index as usize))
}

/// The items that the list of a task has now, in their order, among the tasks of its run, which are in the order of their keys.
pub fn items<'t>(tasks: &'t [TaskRow], list: &'t TaskRow) -> impl Iterator<Item = &'t TaskRow> {
    item_keys(list).filter_map(|key| {
        let place = tasks.binary_search_by(|task| (*task.task_key).cmp(key.as_str()));
        place.ok().map(|place| &tasks[place])
    })
}
