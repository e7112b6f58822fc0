"""Events of agents, published and heard."""

from nexus_context import Event, EventBus

bus = EventBus()
end = bus.listen(lambda folder, event: print(folder, event.action, event.text or event.tool))
bus.publish("/work/shop", [Event(action="execute", text="Run the tests.", session="tuesday")])
bus.publish("/work/shop", [Event(action="tool_call", tool="shell", arguments={"command": "pytest"})])
end()
print(len(bus.events("/work/shop")), len(bus.events("/work/shop", session="tuesday")))

# It prints:
# /work/shop execute Run the tests.
# /work/shop tool_call shell
# 2 1
