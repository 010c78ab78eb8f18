//! Bytes of a weight synchronisation: who gets what, and how long the links are busy with it.
//!
//! One idea: everything to everyone, or to each rank its own experts and the common part. Both are sums over
//! ranks, so they hold for any number of ranks, also one that does not divide the experts.

use pipestep_engine::{Bytes, Duration, Overflow};

use crate::stages::{FanOut, Payload, SyncContent, Transfer};

impl Payload {
    /// All weights of one engine, each counted once.
    ///
    /// # Errors
    /// [`Overflow`] past 64 bits.
    pub const fn total(&self) -> Result<Bytes, Overflow> {
        self.common.plus(self.experts)
    }

    /// What the rank with the most experts holds.
    ///
    /// # Errors
    /// [`Overflow`] past 64 bits.
    pub fn largest_rank(&self) -> Result<Bytes, Overflow> {
        let (experts, count, ranks) = (
            u128::from(self.experts.get()),
            u128::from(self.expert_count.max(1)),
            u128::from(self.ranks.max(1)),
        );
        // Experts are alike, so a rank's bytes are its share of the count; the sum is exact if the bytes
        // divide, and rounded up otherwise.
        let most = count.div_ceil(ranks);
        let own = (experts * most).div_ceil(count);
        self.common.plus(Bytes::new(u64::try_from(own).expect("at most all expert bytes, which fit")))
    }

    /// What the ranks of one engine receive together.
    ///
    /// # Errors
    /// [`Overflow`] past 64 bits.
    pub fn received_by_engine(&self, content: SyncContent) -> Result<Bytes, Overflow> {
        let ranks = u64::from(self.ranks);
        match content {
            SyncContent::Whole => self.total()?.times(ranks),
            SyncContent::OwnShards => self.common.times(ranks)?.plus(self.experts),
        }
    }

    /// What one receiver gets at most.
    fn received_by_rank(&self, content: SyncContent) -> Result<Bytes, Overflow> {
        match content {
            SyncContent::Whole => self.total(),
            SyncContent::OwnShards => self.largest_rank(),
        }
    }
}

impl Transfer {
    /// Bytes that the sending side sends to `engines` engines. A broadcast sends each weight once.
    ///
    /// # Errors
    /// [`Overflow`] past 64 bits.
    pub fn sent(&self, engines: u32) -> Result<Bytes, Overflow> {
        match self.fan_out {
            FanOut::Unicast => self.payload.received_by_engine(self.content)?.times(u64::from(engines)),
            FanOut::Broadcast => self.payload.total(),
        }
    }

    /// Time until `engines` engines have their weights: the slower of the sending side and a receiver,
    /// after the start-up.
    ///
    /// # Errors
    /// [`Overflow`] past 64 bits.
    pub fn time(&self, engines: u32) -> Result<Duration, Overflow> {
        let sending = self.send.time_for(self.sent(engines)?)?;
        let receiving = match self.receive {
            Some(rate) => rate.time_for(self.payload.received_by_rank(self.content)?)?,
            None => Duration::ZERO,
        };
        self.setup.plus(sending.max(receiving))
    }
}
