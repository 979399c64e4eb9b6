package envelope

import "strings"

// reasoningTags open and close the reasoning that a model writes before its answer:
// <think> of DeepSeek, Qwen, GLM, Granite and most others, <thinking> and <reasoning>
// of models that were told or trained to, <thought> of Gemini's OpenAI endpoint,
// <seed:think> of Seed-OSS, and [THINK] of Magistral.
var reasoningTags = [...][2]string{
	{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<thought>", "</thought>"}, {"<reasoning>", "</reasoning>"},
	{"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"},
}

// CutReasoning splits a model's text into the reasoning that it begins with and the
// answer. Reasoning stands in blocks such as <think>…</think>. If the text has no
// opening tag and a closing one alone on its line, it is what comes before: chat
// templates of some models write the opening tag into the prompt. Of a block that is
// not closed, all is reasoning, and whole is false. A text without reasoning is the
// answer as it is.
func CutReasoning(text string) (reasoning, answer string, whole bool) {
	answer = text
	var blocks []string
	if before, rest, found := unopened(text); found {
		blocks, answer = append(blocks, strings.TrimSpace(before)), rest
	}
	for {
		block, rest, closed, found := leadingBlock(answer)
		if !found {
			break
		}
		if block = strings.TrimSpace(block); block != "" {
			blocks = append(blocks, block)
		}
		if answer = rest; !closed {
			return strings.Join(blocks, "\n\n"), "", false
		}
	}
	return strings.Join(blocks, "\n\n"), answer, true
}

// space are the characters that may stand around a block of reasoning.
const space = " \t\r\n\ufeff"

// leadingBlock returns what stands in the block of reasoning that a text begins with,
// and what follows it.
func leadingBlock(text string) (block, rest string, closed, found bool) {
	body := strings.TrimLeft(text, space)
	for _, tag := range reasoningTags {
		if inner, ok := strings.CutPrefix(body, tag[0]); ok {
			block, rest, closed = strings.Cut(inner, tag[1])
			return block, strings.TrimLeft(rest, space), closed, true
		}
	}
	return "", text, false, false
}

// unopened returns what stands before and behind a closing tag, alone on its line,
// of a text that does not have the opening one before it. It looks once at the text,
// so that a text of many such lines takes no longer.
func unopened(text string) (before, rest string, found bool) {
	for _, tag := range reasoningTags {
		before, after, ok := strings.Cut(text, tag[1])
		line, _, _ := strings.Cut(after, "\n")
		if !ok || strings.Contains(before, tag[0]) || strings.TrimSpace(line) != "" || strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) != "" {
			continue
		}
		return before, strings.TrimLeft(after, space), true
	}
	return "", text, false
}
