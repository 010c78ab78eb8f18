//! The TOML scenario format: text to validated inputs, with good errors.
