package manifest

import "time"

// Limits bounds what one page may declare. The zero value of a field stands for its default.
type Limits struct {
	// Tools is the number of tools of one page; default [DefaultTools]. The first ones are kept.
	Tools int
	// Prompts is the number of prompts of one page, Resources that of its resources and resource templates together;
	// default 512 each. The first ones are kept.
	Prompts, Resources int
	// NameBytes is the length of the own name of a tool, prompt or argument, in bytes; default 256. It also bounds titles and
	// the page's label.
	NameBytes int
	// DescriptionBytes is the length of a description, in bytes; default 8 KiB. Longer ones are cut.
	DescriptionBytes int
	// SummaryBytes is the length of the page's summary, in bytes; default 4 KiB. Longer ones are cut.
	SummaryBytes int
	// SchemaBytes is the size, in bytes of compact JSON, of each of the input schema, the output schema, the example, the
	// icons and the code of a dynamic tool; default 64 KiB.
	SchemaBytes int
	// Depth is how deep the JSON of a schema, an example or annotations may nest; default 64, at most 300.
	// A scalar has depth 0, {} has depth 1.
	Depth int
}

// DefaultTools is the number of tools that one page may declare, unless configured otherwise.
const DefaultTools = 512

const (
	maxProblems    = 100
	maxReasonBytes = 400
	maxURLBytes    = 2048
	maxTimeout     = 24 * time.Hour
	maxIcons       = 8
	maxDepthLimit  = 300
	maxMIMEBytes   = 255
	// maxPromptArguments is the number of arguments of one prompt.
	maxPromptArguments = 100
	// maxOwnURIBytes is the length of a page's own URI or template, before and after it is percent-encoded; maxVariables is the
	// number of variables of one template, and maxURIBytes the length of a URI that a client asks for.
	maxOwnURIBytes = 2048
	maxVariables   = 32
	maxURIBytes    = 8 << 10
	// decoderDepth is where encoding/json gives up.
	decoderDepth = 10_000
)

// withDefaults fills in zero and negative fields.
func (l Limits) withDefaults() Limits {
	fill := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	fill(&l.Tools, DefaultTools)
	fill(&l.Prompts, DefaultTools)
	fill(&l.Resources, DefaultTools)
	fill(&l.NameBytes, 256)
	fill(&l.DescriptionBytes, 8<<10)
	fill(&l.SummaryBytes, 4<<10)
	fill(&l.SchemaBytes, 64<<10)
	fill(&l.Depth, 64)
	l.Depth = min(l.Depth, maxDepthLimit)
	return l
}
