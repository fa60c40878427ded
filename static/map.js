/* Draws the map of what flows where. Without it the page is the same as a table. */
(() => {
  "use strict";

  const map = document.getElementById("map");
  const data = JSON.parse(map.dataset.map);
  const canvas = map.querySelector("[data-canvas]");
  const said = map.querySelector("[data-map-said]");
  const table = document.getElementById("map-table").closest("section");
  const SPACE = "http://www.w3.org/2000/svg";
  const WIDTH = 168;
  const HEIGHT = 44;
  const BETWEEN = 36;
  const HEAD = 28;
  const LETTERS = 19;
  const DETAIL_LETTERS = 24;
  const SMALLEST = 0.45;
  // The smallest text has 11.5 px: from here it has 11, which can still be read.
  const READABLE = 11 / 11.5;

  const draw = (name, attributes, ...children) => {
    const element = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const cut = (text, most) => {
    const letters = [...text];
    return letters.length <= most
      ? text
      : `${letters.slice(0, Math.ceil((most - 1) * 0.4)).join("")}…${letters.slice(-Math.floor((most - 1) * 0.6)).join("")}`;
  };

  // Columns that have nodes, from left to right; a node's rank is its column's.
  const columns = [...new Set(data.nodes.map((node) => node.column))].sort((one, other) => one - other);
  const nodes = new Map(data.nodes.map((node) => [node.id, { ...node, edges: [] }]));
  const edges = data.edges.map((edge) => ({ ...edge, from: nodes.get(edge.source), to: nodes.get(edge.target) }));

  const place = () => {
    const graph = new dagre.graphlib.Graph();
    // The ranks are given: dagre doubles them, for labels that edges might have.
    graph.setGraph({ rankdir: "LR", ranker: "none", nodesep: 14, edgesep: 10, ranksep: BETWEEN, marginx: 8, marginy: 8 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const node of nodes.values())
      graph.setNode(node.id, { width: WIDTH, height: HEIGHT, rank: 2 * columns.indexOf(node.column) });
    for (const edge of edges) graph.setEdge(edge.source, edge.target, { minlen: 1 });
    dagre.layout(graph);
    for (const node of nodes.values()) Object.assign(node, { x: graph.node(node.id).x, y: graph.node(node.id).y });
    for (const edge of edges) edge.points = graph.edge(edge.source, edge.target).points;
    return graph.graph();
  };

  // Straight through a column, where dagre keeps the line clear of its nodes; bent only between columns.
  const path = (edge) => {
    const middles = new Set([...nodes.values()].map((node) => node.x));
    const passed = edge.points.slice(1, -1).filter((point) => middles.has(point.x));
    let line = `M${edge.from.x + WIDTH / 2} ${edge.from.y}`;
    let [x, y] = [edge.from.x + WIDTH / 2, edge.from.y];
    for (const stop of [...passed, edge.to]) {
      const left = stop.x - WIDTH / 2;
      line += `C${(x + left) / 2} ${y} ${(x + left) / 2} ${stop.y} ${left} ${stop.y}`;
      [x, y] = [stop.x + WIDTH / 2, stop.y];
      if (stop !== edge.to) line += `H${x}`;
    }
    return line;
  };

  const box = (node) => {
    const group = draw("a", {
      href: node.url,
      class: `map-node map-${node.tone}${node.group ? " map-group" : ""}`,
      "aria-label": node.label,
      transform: `translate(${node.x - WIDTH / 2} ${node.y - HEIGHT / 2})`,
    });
    if (node.group) group.append(draw("rect", { class: "map-behind", x: 4, y: 4, width: WIDTH, height: HEIGHT, rx: 5 }));
    group.append(
      draw("rect", { class: "map-box", width: WIDTH, height: HEIGHT, rx: 5 }),
      draw("rect", { class: "map-bar", width: 5, height: HEIGHT, rx: 2 }),
      draw("text", { class: "map-name", x: 14, y: 18 }, cut(node.name, LETTERS)),
      draw("text", { class: "map-detail", x: node.icon ? 30 : 14, y: 35 }, cut(node.detail, DETAIL_LETTERS)),
      draw("title", {}, node.name),
    );
    if (node.icon)
      group.append(draw("use", { class: "map-icon", href: `${map.dataset.icons}#${node.icon}`, x: 13, y: 24, width: 13, height: 13 }));
    return group;
  };

  const size = place();
  const width = Math.ceil(size.width);
  const height = Math.ceil(size.height + HEAD);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "map-drawing", role: "group", "aria-labelledby": "map-title" });
  for (const column of columns) {
    const x = Math.min(...[...nodes.values()].filter((node) => node.column === column).map((node) => node.x));
    svg.append(draw("text", { class: "map-column", x: x - WIDTH / 2, y: 16 }, data.columns[column]));
  }
  const inside = draw("g", { transform: `translate(0 ${HEAD})` });
  for (const edge of edges) {
    edge.line = draw("path", { class: `map-edge map-edge-${edge.evidence}`, d: path(edge) }, draw("title", {}, edge.words));
    edge.from.edges.push(edge);
    edge.to.edges.push(edge);
    inside.append(edge.line);
  }
  // In the order of the drawing, so that Tab goes down a column and then to the next one.
  const inOrder = [...nodes.values()].sort((one, other) => one.x - other.x || one.y - other.y);
  for (const node of inOrder) {
    node.box = box(node);
    inside.append(node.box);
  }
  svg.append(inside);
  canvas.append(svg);
  map.hidden = false;

  // On a phone the table comes first.
  const narrow = matchMedia("(max-width: 40rem)");
  const below = map.nextElementSibling;
  const order = () => (narrow.matches ? table.after(map) : below.before(map));
  narrow.addEventListener("change", order);
  order();

  let scale = 1;
  const zoom = (to) => {
    scale = Math.min(2, Math.max(SMALLEST, to));
    svg.setAttribute("width", Math.round(width * scale));
    svg.setAttribute("height", Math.round(height * scale));
  };
  const rest = map.querySelector("[data-map-rest]");
  // What is too large to be read as a whole is moved instead, and begins at the node that the map is around.
  const fit = () => {
    const whole = Math.min((canvas.clientWidth - 20) / width, Math.max(canvas.clientHeight, innerHeight * 0.62) / height);
    zoom(Math.max(READABLE, Math.min(1, whole)));
    rest.hidden = whole >= READABLE;
    const middle = nodes.get(new URLSearchParams(location.search).get("focus"));
    if (middle)
      canvas.scrollTo(middle.x * scale - canvas.clientWidth / 2, (middle.y + HEAD) * scale - canvas.clientHeight / 2);
  };
  const act = (step) => (step === 0 ? fit() : zoom(scale * 1.25 ** step));
  fit();
  map.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (button) act(Number(button.dataset.zoom));
  });

  const show = (node) => {
    for (const edge of edges) edge.line.classList.toggle("map-lit", node?.edges.includes(edge) ?? false);
    if (!node) return;
    const flows = node.edges.map((edge) => (edge.from === node ? `→ ${edge.to.name} (${edge.words})` : `${edge.from.name} → (${edge.words})`));
    said.textContent = [node.label, ...flows.slice(0, 6), ...(flows.length > 6 ? ["…"] : [])].join(" · ");
  };
  const nodeOf = (target) => {
    const element = target.closest?.(".map-node");
    return element && inOrder.find((node) => node.box === element);
  };
  // Not at the SVG: Chromium lets Tab stop at one that listens to the focus.
  for (const name of ["pointerover", "focusin"])
    canvas.addEventListener(name, (event) => show(nodeOf(event.target) ?? nodeOf(document.activeElement)));

  // The nearest node in a direction: along a flow if there is one, else in the column, else in the next column.
  const STEPS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
  const next = (node, [across, down]) => {
    const ahead = (other) => (across ? Math.sign(other.x - node.x) === across : other.x === node.x && Math.sign(other.y - node.y) === down);
    const linked = across ? node.edges.map((edge) => (across > 0 ? edge.to : edge.from)).filter(ahead) : [];
    const others = linked.length ? linked : inOrder.filter(ahead);
    const far = (other) => Math.abs(other.x - node.x) * (linked.length ? 0 : 4) + Math.abs(other.y - node.y);
    return others.reduce((best, other) => (best && far(best) <= far(other) ? best : other), null);
  };
  canvas.addEventListener("keydown", (event) => {
    const node = nodeOf(event.target);
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in STEPS) {
      event.preventDefault();
      next(node, STEPS[event.key])?.box.focus();
    }
    if (["+", "-", "0"].includes(event.key)) {
      event.preventDefault();
      act({ "+": 1, "-": -1, 0: 0 }[event.key]);
      node.box.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  });

  // Dragging the ground moves it.
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button || nodeOf(event.target)) return;
    held = { x: event.clientX + canvas.scrollLeft, y: event.clientY + canvas.scrollTop };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    canvas.scrollLeft = held.x - event.clientX;
    canvas.scrollTop = held.y - event.clientY;
  });
  for (const name of ["pointerup", "pointercancel"])
    canvas.addEventListener(name, () => {
      held = null;
    });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      act(event.deltaY < 0 ? 1 : -1);
    },
    { passive: false },
  );
})();
