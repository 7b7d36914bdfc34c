/** Questions before something is done. */

import { signal, useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import { Button, Dialog } from "./ui.tsx";

export interface Question {
  title: string;
  text: string;
  /** What the button says that does it. */
  action: string;
  danger?: boolean;
  /** Asks for a text. */
  field?: { label: string; value: string; help?: string; suggestions?: string[]; secret?: boolean };
}

const question = signal<(Question & { key: number; answer(value: string | undefined): void }) | undefined>(undefined);
let keys = 0;

/** Resolves with the text that was given ("yes" when none is asked for), or undefined when it was not to be. */
export function ask(asked: Question): Promise<string | undefined> {
  question.peek()?.answer(undefined);
  return new Promise((resolve) => {
    question.value = {
      ...asked,
      key: ++keys,
      answer(value) {
        question.value = undefined;
        resolve(value);
      },
    };
  });
}

/** Where questions appear. */
export function Asker() {
  const asked = question.value;
  return asked ? <Asked key={asked.key} asked={asked} answer={asked.answer} /> : null;
}

/** `answer` gets undefined when it was not to be. */
export function Asked({ asked, answer }: { asked: Question; answer: (value: string | undefined) => void }) {
  const { field } = asked;
  const id = useId();
  const value = useSignal(field?.value ?? "");
  const done = useRef(false);
  function once(given: string | undefined): void {
    if (done.current) return; // Closing the dialog says it again.
    done.current = true;
    answer(given);
  }
  const common = {
    id,
    "data-first": true,
    required: true,
    "aria-describedby": field?.help ? id + "h" : undefined,
    autocomplete: "off" as const,
    spellcheck: false,
    value: value.value,
    onInput: (event: { currentTarget: { value: string } }) => (value.value = event.currentTarget.value),
  };
  return (
    <Dialog title={asked.title} onClose={() => once(undefined)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!field) once("yes");
          else if (value.value.trim()) once(value.value.trim());
        }}
      >
        <p>{asked.text}</p>
        {field && (
          <div class="field">
            <label class="field-label" for={id}>
              <span class="field-name">{field.label}</span>
            </label>
            {field.secret ? <input {...common} type="password" /> : <input {...common} list={field.suggestions ? id + "l" : undefined} />}
            {field.suggestions && (
              <datalist id={id + "l"}>
                {field.suggestions.map((one) => (
                  <option key={one} value={one} />
                ))}
              </datalist>
            )}
            {field.help && (
              <p class="field-help" id={id + "h"}>
                {field.help}
              </p>
            )}
          </div>
        )}
        <div class="actions end">
          <Button onClick={() => once(undefined)} data-first={asked.danger}>
            Cancel
          </Button>
          <Button type="submit" tone={asked.danger ? "danger" : "primary"}>
            {asked.action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
