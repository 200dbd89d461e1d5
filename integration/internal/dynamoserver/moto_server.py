"""moto's server on a port of loopback, the argument, with what DynamoDB's
documentation promises, dynamolock cannot do without, and moto leaves out:

- A write is atomic. moto looks at conditions and changes items with no lock, so
  it gets one request at a time here, read in full before, so that a client that
  stalls keeps nobody up.
- Binary values are compared as bytes, and begins_with takes them. moto compares
  their base64, and begins_with is false for all but strings.
- A comparison of values of two types is false. moto fails at those of order.
- ReturnValues UPDATED_NEW returns every attribute that the update has set. moto
  leaves out those whose value is what it was, and adds the key of a new item.

All else is as moto has it; TestMotoDeviates has what is known of that.
"""
import base64
import io
import logging
import sys
import threading

import werkzeug.serving

run_simple = werkzeug.serving.run_simple


def serve(host, port, app, **options):
    turn = threading.Lock()

    def one_at_a_time(environ, start_response):
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        with turn:
            return list(app(environ, start_response))

    run_simple(host, port, one_at_a_time, **options)


werkzeug.serving.run_simple = serve
logging.getLogger("werkzeug").setLevel(logging.ERROR)

import moto.server  # noqa: E402  it takes run_simple as it is now
from moto.dynamodb import comparisons, responses  # noqa: E402
from moto.dynamodb.models import dynamo_type  # noqa: E402
from moto.dynamodb.parsing import ast_nodes, executors  # noqa: E402


def decoded(value):
    return base64.b64decode(value) if isinstance(value, str) else value


value_of = comparisons.AttributeValue.expr
comparisons.AttributeValue.expr = lambda self, item: decoded(self.value) if self.type == "B" else value_of(self, item)
cast_value = dynamo_type.DynamoType.cast_value.fget
dynamo_type.DynamoType.cast_value = property(lambda self: decoded(self.value) if self.is_binary() else cast_value(self))


def begins_with(self, item):
    kinds = {self.attr.get_type(item), self.substr.get_type(item)}
    return kinds in ({"S"}, {"B"}) and self.attr.expr(item).startswith(self.substr.expr(item))


comparisons.FuncBeginsWith.expr = begins_with


def false_of_two_types(compare):
    def compared(self, item):
        try:
            return compare(self, item)
        except TypeError:
            return False

    return compared


for kind in (
    comparisons.OpLessThan,
    comparisons.OpLessThanOrEqual,
    comparisons.OpGreaterThan,
    comparisons.OpGreaterThanOrEqual,
    comparisons.FuncBetween,
):
    kind.expr = false_of_two_types(kind.expr)

# What the update under way has set, of which there is one at a time.
updated = []
update_item = responses.DynamoHandler.update_item
execute = executors.SetExecutor.execute


def note_set(self, item):
    nodes = self.get_path_expression_nodes()
    if len(nodes) == 1:
        node = nodes[0]
        if isinstance(node, ast_nodes.ExpressionAttributeName):
            updated.append(self.expression_attribute_names[node.get_attribute_name_placeholder()])
        else:
            updated.append(node.get_attribute_name())
    execute(self, item)


def updated_new(self, original, changed):
    return {
        name: changed[name]
        for name in changed
        if name not in self.body["Key"] and (name in updated or original.get(name) != changed[name])
    }


def fresh_update(self):
    updated.clear()
    return update_item(self)


executors.SetExecutor.execute = note_set
executors.UpdateExpressionExecutor.execution_map[ast_nodes.UpdateExpressionSetAction] = executors.SetExecutor
responses.DynamoHandler._build_updated_new_attributes = updated_new
responses.DynamoHandler.update_item = fresh_update

moto.server.main(["-H", "127.0.0.1", "-p", sys.argv[1]])
