package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"jsbridge/manifest"
	"jsbridge/tenant"
)

// request is what the requests that go to a page have in common.
type request struct {
	ctx       context.Context // the handler's: leads the SDK to the right stream
	ss        *mcp.ServerSession
	extra     *mcp.RequestExtra
	agent     tenant.Agent
	can       can
	token     any // for progress; nil: the client wants none
	responses mcp.InputResponseMap
	state     string
	begun     time.Time
	running   *running // the call, if it was begun before

	mu      sync.Mutex
	lacks   *lackError // why a question of the page was not asked
	refused bool       // one was not, and the log has it
}

func requestOf[P mcp.Params](ctx context.Context, r *mcp.ServerRequest[P]) *request {
	out := &request{ctx: ctx, ss: r.Session, extra: r.Extra, can: capabilitiesOf(r.ClientCapabilities()), begun: time.Now()}
	out.agent = agentFrom(r.ClientInfo(), out.can)
	if p, ok := any(r.Params).(interface{ GetProgressToken() any }); ok {
		out.token = p.GetProgressToken()
	}
	return out
}

// repeats notes what a client gives that calls again, as it was told to.
func (r *request) repeats(responses mcp.InputResponseMap, state string) *request {
	r.responses, r.state = responses, state
	return r
}

// refused notes, and logs, why a question of the page is not asked.
func (s *session) refused(r *request, a *tenant.Ask, err error) {
	var lacks *lackError
	level := slog.LevelDebug // a page may have any number of them
	r.mu.Lock()
	if errors.As(err, &lacks) {
		r.lacks = lacks
	}
	if !r.refused {
		r.refused, level = true, slog.LevelWarn
	}
	r.mu.Unlock()
	s.h.counts.question(a.Kind, refusedFate)
	s.logCall(a.Page, a.Call).Log(r.ctx, level, "a page's question was not asked", "kind", a.Kind, "err", manifest.Clean(err.Error(), 256, false))
	a.Answer(tenant.Answer{Err: pageError(err)})
}

// retry is that for the page.
func (r *request) retry() (tenant.Retry, error) {
	out := tenant.Retry{State: r.state}
	if r.responses == nil {
		return out, nil
	}
	raw, err := json.Marshal(r.responses)
	out.Responses = raw
	return out, err
}

// errand is what a page is asked to do.
type errand struct {
	label, origin string // of the page
	kind, name    string // of what is called
	quiet         bool   // it has no questions
	do            func(context.Context, tenant.Call) (tenant.Answer, error)
}

// target tells whether a retry is of the same.
func (e errand) target() string { return e.kind + e.name }

// reply is a page's answer, or its questions in place of one.
type reply struct {
	answer    tenant.Answer
	questions *questions // only for stateless clients, who come again
}

// run has the page do it. Questions that the page has meanwhile go to the client.
// The error is a [*tenant.CallError], the context's, a [*lackError], one of the
// protocol, or what is wrong with the page's questions.
func (s *session) run(r *request, e errand) (reply, error) {
	if s.shared {
		return s.exchange(r, e)
	}
	for round := 1; ; round++ {
		answer, err := s.watched(r, e)
		if err != nil {
			return reply{}, err
		}
		q, err := s.returned(r, e, answer)
		if err != nil || q == nil {
			return reply{answer: answer}, err
		}
		if round > maxRounds {
			return reply{}, errors.New("the page goes on asking instead of giving a result")
		}
		if err := r.mayAsk(); err != nil {
			s.h.counts.all(q, refusedFate)
			return reply{}, err
		}
		if r.responses, err = s.putAll(r, q); err != nil {
			return reply{}, err
		}
		r.state = q.state
	}
}

// returned gives the questions that a page returned, once they can be asked.
func (s *session) returned(r *request, e errand, a tenant.Answer) (*questions, error) {
	if a.Err != nil {
		return nil, nil
	}
	q, err := s.h.questionsIn(a.Result)
	if q == nil || err != nil {
		return nil, err
	}
	for _, question := range q.requests {
		if err := r.check(question, e); err != nil {
			s.h.counts.question(kindOf(question), refusedFate)
			return nil, err
		}
	}
	return q, nil
}

// post leads to the response that the client waits for.
func (r *request) post() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.Header.Get(postHeader)
}

// check tells why the client can't be asked a question, and notes on one to its
// user who asks: the client shows only that it comes from jsbridge.
func (r *request) check(q mcp.InputRequest, e errand) error {
	if err := r.can.check(r.agent, q); err != nil {
		return err
	}
	if form, ok := q.(*mcp.ElicitParams); ok {
		form.Message = attributed(form.Message, "Asked by", e.label, e.origin)
	}
	return nil
}

// mayAsk tells whether a session's client can be asked during this request.
func (r *request) mayAsk() error {
	if r.extra != nil && r.extra.Header.Get(jsonHeader) != "" {
		return errors.New("the MCP client takes a plain JSON answer only (its Accept header), so it can't be asked anything during a call")
	}
	return nil
}

// watched makes a call that ends with the session too, and passes on what the
// page says meanwhile.
func (s *session) watched(r *request, e errand) (tenant.Answer, error) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()

	w := newWatch(ctx, s, r, e.label)
	defer w.stop()
	var asks sync.WaitGroup
	ask := func(a *tenant.Ask) { asks.Go(func() { s.ask(ctx, r, e, a) }) }
	answer, err := s.made(ctx, r, e, w, ask)
	if err != nil {
		cancel(err)
	} else {
		cancel(context.Canceled)
	}
	asks.Wait()
	var ce *tenant.CallError
	if err != nil && !errors.As(err, &ce) {
		err = context.Cause(ctx)
	}
	return answer, err
}

// made is the call itself: a new one, or the rest of one that runs.
func (s *session) made(ctx context.Context, r *request, e errand, w *watch, ask func(*tenant.Ask)) (tenant.Answer, error) {
	if c := r.running; c != nil {
		r.running = nil // a further round is a call of its own
		return c.join(ctx, w, ask)
	}
	retry, err := r.retry()
	if err != nil {
		return tenant.Answer{}, err
	}
	call := tenant.Call{Agent: r.agent, Session: s.id, Progress: w.token != nil, OnEvent: w.event, Retry: retry}
	if !e.quiet {
		call.OnAsk = ask
	}
	return e.do(ctx, call)
}

// cancelPatience bounds awaitCancelled: a question that never went out is not
// taken back either.
const cancelPatience = 250 * time.Millisecond

// awaitCancelled waits until the client was told to stop asking. The SDK tells it
// on the call's own stream and in its own time, but with the call's answer that
// stream ends.
func (s *session) awaitCancelled(ctx context.Context, r *request) {
	st, ok := s.h.posts.Load(r.post())
	if !ok || ctx.Err() == nil { // then it has answered
		return
	}
	late := time.NewTimer(cancelPatience)
	defer late.Stop()
	select {
	case <-st.(*stream).cancels:
	case <-r.ctx.Done():
	case <-s.ctx.Done():
	case <-late.C:
	}
}

// ask has the session's client answer a page's question.
func (s *session) ask(ctx context.Context, r *request, e errand, a *tenant.Ask) {
	q, err := s.h.parseAsk(a)
	if err == nil {
		err = r.check(q, e)
	}
	if err == nil {
		err = r.mayAsk()
	}
	if err != nil {
		s.refused(r, a, err)
		return
	}
	call := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, s.h.opts.AskTimeout, s.h.nobodyAnswered())
	defer cancel()
	var response mcp.InputResponse
	err = s.safely("a page's question", func() (err error) {
		response, err = s.put(ctx, q)
		return err
	})
	if err != nil {
		s.awaitCancelled(ctx, r)
		if call.Err() != nil { // the page hears that its call has ended
			s.h.counts.question(a.Kind, endedFate)
			return
		}
		err = why(ctx, err)
		s.h.counts.question(a.Kind, fateOf(err))
		a.Answer(answered(q, response, err))
		return
	}
	given := answered(q, response, nil)
	s.h.counts.question(a.Kind, fateOfAnswer(given))
	a.Answer(given)
}
