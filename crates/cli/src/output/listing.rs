//! Lists: one shape, whatever is listed, and the flags that page through them.

use clap::Args;
use segno_api::Unreadable;
use segno_api::client::PageRequest;
use serde::Serialize;

use crate::exit::Failure;

/// Most rows of one request; the server has the same limit.
const MAX_ROWS_PER_REQUEST: usize = 1_000;

/// How much of a list.
#[derive(Debug, Clone, Args)]
pub struct Paging {
    /// List at most this many.
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Continue after an earlier page: its `next_cursor`.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// A list, or a page of it.
#[derive(Debug, Serialize)]
pub struct Page<T> {
    /// What is listed.
    pub items: Vec<T>,
    /// Where the next page begins; absent on the last one.
    pub next_cursor: Option<String>,
    /// Rows that the server cannot read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
}

impl<T> Page<T> {
    /// A page of a server's answer.
    pub fn of(items: Vec<T>, unreadable: Vec<Unreadable>, next_cursor: Option<String>) -> Self {
        Page { items, next_cursor, unreadable }
    }

    /// A whole list.
    pub fn whole(items: Vec<T>) -> Self {
        Page { items, next_cursor: None, unreadable: Vec::new() }
    }
}

impl Paging {
    /// As many rows as were asked for, in as many requests as that takes.
    ///
    /// # Errors
    /// Those of the requests.
    pub async fn gather<T, F>(&self, mut fetch: impl FnMut(PageRequest) -> F) -> Result<Page<T>, Failure>
    where
        F: Future<Output = Result<Page<T>, Failure>>,
    {
        let wanted = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut whole = Page { next_cursor: self.cursor.clone(), ..Page::whole(Vec::new()) };
        loop {
            let rows = (wanted - whole.items.len()).min(MAX_ROWS_PER_REQUEST);
            let request = PageRequest { limit: Some(rows), cursor: whole.next_cursor.take() };
            let page = fetch(request).await?;
            whole.items.extend(page.items);
            whole.unreadable.extend(page.unreadable);
            whole.next_cursor = page.next_cursor;
            if whole.next_cursor.is_none() || whole.items.len() >= wanted {
                return Ok(whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 on, as a server lists them.
    async fn numbers(request: PageRequest, end: usize, asked: &mut Vec<usize>) -> Page<usize> {
        let (first, rows) =
            (request.cursor.map_or(0, |cursor| cursor.parse().unwrap()), request.limit.unwrap());
        asked.push(rows);
        let next = (first + rows).min(end);
        Page { next_cursor: (next < end).then(|| next.to_string()), ..Page::whole((first..next).collect()) }
    }

    #[tokio::test]
    async fn as_many_are_listed_as_were_asked_for_and_the_cursor_is_behind_them() {
        for (limit, cursor, end, listed, next, asked) in [
            (50, None, 7, 0..7, None, vec![50]),
            (5, None, 7, 0..5, Some("5"), vec![5]),
            (5, Some("5"), 7, 5..7, None, vec![5]),
            (7, None, 7, 0..7, None, vec![7]),
            (2_500, None, 9_999, 0..2_500, Some("2500"), vec![1_000, 1_000, 500]),
            (2_500, Some("9000"), 9_999, 9_000..9_999, None, vec![1_000]),
        ] {
            let paging = Paging { limit, cursor: cursor.map(str::to_owned) };
            let requests = std::cell::RefCell::new(Vec::new());
            let page = paging
                .gather(|request| {
                    let requests = &requests;
                    async move {
                        let mut asked = requests.take();
                        let page = numbers(request, end, &mut asked).await;
                        requests.replace(asked);
                        Ok(page)
                    }
                })
                .await
                .unwrap();
            assert_eq!(page.items, listed.collect::<Vec<_>>());
            assert_eq!((page.next_cursor.as_deref(), requests.into_inner()), (next, asked));
        }
    }
}
