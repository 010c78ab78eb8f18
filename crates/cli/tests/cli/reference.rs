//! The parts of the documentation that are made from the code are what the code says.
