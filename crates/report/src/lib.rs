//! What a user gets: JSON, CSV, tables and pictures of simulated timelines.
