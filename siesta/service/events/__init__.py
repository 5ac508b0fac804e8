"""Events of a served learner, sent to an MQTT broker and to webhooks."""

from siesta.service.events.event import Event, EventName
from siesta.service.events.hub import EventHub, make_sinks
from siesta.service.events.options import EventOptions, MqttAddress

__all__ = ["Event", "EventHub", "EventName", "EventOptions", "MqttAddress", "make_sinks"]
