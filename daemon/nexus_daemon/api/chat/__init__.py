"""Answer `nexus/chat/send`: run a whole turn through the configured provider.

1. A turn makes the same requests as a client with its own model: assemble, append, call a tool, compact.
2. Each step is on the disk before the next one begins: the user's message with the first answer, an answer
   with its calls before they are run, and all results together. So a turn that is cut off anywhere leaves a
   history that the next request repairs, and nothing is sent twice.
3. Text that the model wrote before a failure or a cancellation is recorded and marked as partial. If the
   model wrote nothing, nothing is recorded: the client still has the message.
4. Once a limit of the settings (`chat`) is reached, no further step is sent. Calls that wait get a result
   that names the limit.
"""

from nexus_daemon.api.chat.send import send as send
