"""What happens when processes, disks, clocks and folders misbehave: `python -m tests.torture`.

    figures    what a fault is measured by
    ledgers    a turn that tells its key; what is wrong with a ledger, said turn by turn
    children   processes that write, read and are killed
    faulty     a file system that fails, lies or remembers every write
    kills power crash full failing readonly windows clock newer damage verified starved   the ledger
    typing_states mutated adversarial race watches canaries terminal imports long unread  everything else

Every fault is a function of how often it is to happen, and returns an `Outcome`.
"""
