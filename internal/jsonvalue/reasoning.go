package jsonvalue

import "strings"

// reasoningTags open and close the reasoning that a model writes before its answer:
// <think> of DeepSeek, Qwen, GLM, Granite and most others, <thinking> and <reasoning>
// of models that were instructed or trained to use them, <thought> of Gemini's OpenAI endpoint,
// <seed:think> of Seed-OSS, and [THINK] of Magistral.
var reasoningTags = [...][2]string{
	{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<thought>", "</thought>"}, {"<reasoning>", "</reasoning>"},
	{"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"},
}

// CutReasoning splits a model's text into the reasoning that it begins with and the
// answer. The reasoning is in blocks such as <think>…</think>. If the text has a closing
// tag alone on its line and no opening one before it, everything before that line is
// reasoning, because the chat templates of some models write the opening tag into the
// prompt. If a block is not closed, the rest of the text is reasoning, the answer is
// empty and whole is false. A text without reasoning is returned unchanged as the answer.
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

// space are the characters that may surround a block of reasoning.
const space = " \t\r\n\ufeff"

// leadingBlock returns the content of the block of reasoning that a text begins with, and
// the text that follows it.
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

// unopened returns the texts before and after a closing tag that is alone on its line and
// has no opening tag before it. It checks only the first closing tag of each kind, so
// that a text of many such lines takes linear time.
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
