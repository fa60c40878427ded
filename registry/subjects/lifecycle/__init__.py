"""The life of a version after its registration: status, retirement, deletion, undeletion, and notes about its subject."""
