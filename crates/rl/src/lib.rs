//! A round of RL post-training: rollout, scoring, update, weight synchronisation.
