"""`nexus/chat/send`: a whole turn through the configured provider, as a client with its own model takes one.

1. A turn is made of the requests that such a client sends: assemble, append, call a tool, compact.
2. Each step is on the disk before the next one begins: the user's message with the first answer, an answer
   with its calls before they are run, and all results together. So a turn that is cut off anywhere leaves a
   history that the next request repairs, and nothing is sent twice.
3. What the model wrote before a failure or a cancellation is recorded and marked as partial. Where it wrote
   nothing, nothing is recorded: the client still has the message.
4. A step is not sent once a limit of the settings is reached (`chat`): the calls that wait get a result that
   says so.
"""

from nexus_daemon.api.chat.send import send as send
