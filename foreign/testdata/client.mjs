// A conversation with tools by OpenAI's client: whole, then streamed. It prints what it received.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
for (const stream of [false, true]) {
  const called = [];
  const runner = client.chat.completions.runTools({
    model: "any",
    stream,
    messages: [{ role: "user", content: "Where do they live?" }],
    tools: [
      {
        type: "function",
        function: {
          name: "look_up",
          parse: JSON.parse,
          function: (args) => {
            called.push(args.name);
            return `${args.name} lives in Oslo.`;
          },
          parameters: { type: "object", properties: { name: { type: "string" } } },
        },
      },
    ],
  });
  const text = await runner.finalContent();
  const completions = runner.allChatCompletions();
  console.log(JSON.stringify({ called, text, finish: completions.map((c) => c.choices[0].finish_reason) }));
}
