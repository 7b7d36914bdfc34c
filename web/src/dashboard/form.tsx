/** The fields of a form made from a schema. */

import { useId } from "preact/hooks";
import { add, addItem, fill, type Fault, type Field, type Node } from "./schema.ts";
import { cut } from "./text.ts";
import { Button, Icon, Text } from "./ui.tsx";

export function Form({ node, faults }: { node: Node; faults: Fault[] }) {
  if (node.raw.value || node.field.kind != "object") return <Place node={node} name="Arguments" faults={faults} />;
  return (
    <div class="fields">
      {node.props.map(({ name, node: child }) => (
        <Place key={name} node={child} name={name} faults={faults} />
      ))}
      {!node.props.length && <p class="soft">This tool takes no arguments.</p>}
    </div>
  );
}

interface PlaceProps {
  node: Node;
  name: string;
  faults: Fault[];
  onRemove?: () => void;
}

/** A field with its name, what it is for, and whether it is set. */
function Place({ node, name, faults, onRemove }: PlaceProps) {
  const id = useId();
  const { field, required } = node;
  const fault = faults.find((one) => one.node === node);
  const grouped = !node.raw.value && (field.kind == "object" || field.kind == "array");
  const described = [field.description && id + "d", fault && id + "f"].filter(Boolean).join(" ") || undefined;
  const head = (
    <>
      <Text class="field-name" value={field.title ? `${field.title}` : name} max={80} />
      {field.title && field.title !== name && <Text class="soft mono" value={name} max={60} />}
      <span class="field-type">
        {typeWords(field)}
        {!required && ", optional"}
      </span>
    </>
  );
  return (
    <div class={`field ${fault ? "faulty" : ""} ${node.set.value ? "" : "unset"}`} role={grouped ? "group" : undefined} aria-labelledby={grouped ? id + "l" : undefined}>
      <div class="field-head">
        {grouped ? (
          <span class="field-label" id={id + "l"}>
            {head}
          </span>
        ) : (
          <label class="field-label" for={id}>
            {head}
          </label>
        )}
        {field.nullable && node.set.value && (
          <label class="check">
            <input type="checkbox" checked={node.isNull.value} onChange={(event) => (node.isNull.value = event.currentTarget.checked)} /> null
          </label>
        )}
        {!required && node.set.value && <Button icon="close" tone="quiet" label={`Leave ${cut(name, 60)} out`} onClick={() => fill(node, undefined)} />}
        {onRemove && <Button icon="trash" tone="quiet" label={`Remove ${cut(name, 60)}`} onClick={onRemove} />}
      </div>
      {field.description && (
        <p class="field-help" id={id + "d"} dir="auto">
          {cut(field.description, 1000)}
        </p>
      )}
      {node.isNull.value && node.set.value ? <p class="soft">null</p> : <Control node={node} id={id} described={described} faulty={!!fault} faults={faults} name={name} />}
      {fault && (
        <p class="field-fault" id={id + "f"}>
          <Icon name="alert" /> {fault.message}
        </p>
      )}
    </div>
  );
}

interface ControlProps {
  node: Node;
  id: string;
  name: string;
  described: string | undefined;
  faulty: boolean;
  faults: Fault[];
}

function Control({ node, id, name, described, faulty, faults }: ControlProps) {
  const { field } = node;
  const common = { id, "aria-describedby": described, "aria-invalid": faulty || undefined, "aria-required": node.required || undefined };
  const typed = {
    ...common,
    value: node.text.value,
    placeholder: node.set.value ? "" : field.default === undefined ? "not set" : "not set; default " + cut(JSON.stringify(field.default), 60),
    spellcheck: false,
    autocomplete: "off" as const,
    onInput: (event: { currentTarget: { value: string } }) => {
      node.text.value = event.currentTarget.value;
      node.set.value = true;
    },
  };
  if (node.raw.value) return <textarea {...typed} class="mono" rows={3} placeholder={node.set.value ? "JSON" : "not set (JSON)"} />;
  switch (field.kind) {
    case "string":
      if (field.secret) return <input {...typed} type="password" />;
      if (field.format == "date") return <input {...typed} type="date" />;
      return <textarea {...typed} rows={1} dir="auto" />;
    case "number":
      return <input {...typed} inputMode={field.integer ? "numeric" : "decimal"} />;
    case "boolean":
      return <Choice node={node} common={common} options={[["false", "false"], ["true", "true"]]} />;
    case "enum":
      return <Choice node={node} common={common} options={field.options.map((option, i) => [String(i), cut(option.label, 100)])} />;
    case "const":
      if (!node.set.value) return <AddButton node={node} name={name} />;
      return <code class="mono">{cut(JSON.stringify(field.value) ?? "", 200)}</code>;
    case "array":
      return (
        <div class="nested">
          {node.items.value.map((item, i) => (
            <Place key={item.key} node={item} name={`${name} ${i + 1}`} faults={faults} onRemove={() => (node.items.value = node.items.value.filter((one) => one !== item))} />
          ))}
          {node.set.value && !node.items.value.length && <p class="soft">An empty list.</p>}
          <Button icon="add" tone="quiet" disabled={node.items.value.length >= field.max} onClick={() => addItem(node)}>
            Add to {cut(name, 40)}
          </Button>
        </div>
      );
    case "object":
      if (!node.set.value) return <AddButton node={node} name={name} />;
      return (
        <div class="nested">
          {node.props.map((prop) => (
            <Place key={prop.name} node={prop.node} name={prop.name} faults={faults} />
          ))}
        </div>
      );
  }
  return null;
}

function AddButton({ node, name }: { node: Node; name: string }) {
  return (
    <Button icon="add" tone="quiet" onClick={() => add(node)}>
      Set {cut(name, 40)}
    </Button>
  );
}

function Choice({ node, common, options }: { node: Node; common: object; options: string[][] }) {
  const unset = !node.set.value;
  return (
    <select
      {...common}
      value={unset ? "" : node.text.value}
      onChange={(event) => {
        const { value } = event.currentTarget;
        node.set.value = node.required || value != "";
        node.text.value = value;
      }}
    >
      {(unset || !node.required) && <option value="">not set</option>}
      {options.map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}

export function typeWords(field: Field): string {
  const word = { string: "text", number: "number", boolean: "true or false", enum: "one of a list", const: "fixed", array: "list", object: "object", json: "JSON" }[field.kind];
  const words = field.kind == "number" && field.integer ? "whole number" : field.kind == "array" ? `list of ${typeWords(field.item)}` : word;
  return field.nullable ? words + " or null" : words;
}
