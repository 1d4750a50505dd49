//! A bucket of requests that fills with time.

/// So many requests a second, and as many at once.
pub struct Bucket {
    tokens: f64,
    filled_at_ms: u64,
}

impl Bucket {
    /// A full bucket.
    pub fn full(per_second: Option<u32>, now_ms: u64) -> Self {
        Bucket { tokens: per_second.map_or(0.0, f64::from), filled_at_ms: now_ms }
    }

    /// Takes one request out, if there is one; without a limit there always is.
    pub fn take(&mut self, per_second: Option<u32>, now_ms: u64) -> bool {
        let Some(per_second) = per_second.map(f64::from) else { return true };
        let seconds = now_ms.saturating_sub(self.filled_at_ms) as f64 / 1_000.0;
        self.tokens = (self.tokens + seconds * per_second).min(per_second);
        self.filled_at_ms = now_ms;
        let there = self.tokens >= 1.0;
        if there {
            self.tokens -= 1.0;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_so_many_a_second() {
        let mut bucket = Bucket::full(Some(2), 0);
        let taken = |bucket: &mut Bucket, now_ms| (0..5).filter(|_| bucket.take(Some(2), now_ms)).count();
        assert_eq!(taken(&mut bucket, 0), 2);
        assert_eq!(taken(&mut bucket, 500), 1);
        assert_eq!(taken(&mut bucket, 60_000), 2);
        assert!(bucket.take(None, 60_000));
    }
}
