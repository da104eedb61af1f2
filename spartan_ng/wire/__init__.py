"""What travels between processes: messages, frames, keys, and the loop that moves them."""
