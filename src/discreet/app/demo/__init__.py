"""The demonstration: each capability adds its own chapter by adding a file to `chapters`."""
