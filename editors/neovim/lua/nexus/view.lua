--- The commands: what the model gets, what it costs, where it comes from.

local nexus = require('nexus')
local page = require('nexus.page')
local text = require('nexus.text')

local grouped, plural, short_path = text.grouped, text.plural, text.short_path

local M = {}

local SEVERITIES = { 'error', 'warning', 'information', 'hint' }
local GROUPS = { 'DiagnosticError', 'DiagnosticWarn', 'DiagnosticInfo', 'DiagnosticHint' }

local function add_usage(shown, usage)
  local estimate = usage.counter.exact and '' or '≈'
  page.add(
    shown,
    ('%s%s%s of %s tokens, %.1f %%%s'):format(
      usage.model ~= '' and usage.model .. ': ' or 'No model is set: ',
      estimate,
      grouped(usage.total),
      grouped(usage.available),
      usage.percent,
      usage.over and ', over' or ''
    ),
    usage.over and 'DiagnosticError' or 'Bold'
  )
  local counted = (usage.counter.exact and 'Counted exactly with %s.' or 'An estimate from %s.'):format(
    usage.counter.name
  )
  local window = ('Window %s, of which %s are kept free. '):format(
    grouped(usage.limit),
    grouped(usage.reserved)
  )
  page.add(shown, window .. counted, 'Comment')
  page.add(shown, '')
  local rows = {}
  local function row(category, label, tokens, exact, group, source)
    local share = usage.total > 0 and ('%.1f %%'):format(100 * tokens / usage.total) or ''
    rows[#rows + 1] = {
      cells = { category, label, grouped(tokens), share, exact and 'exact' or '≈' },
      group = group,
      target = source,
    }
  end
  local exact = true
  for _, each in ipairs(usage.rows) do
    row(each.category, each.label, each.tokens, each.exact, nil, each.source)
    exact = exact and each.exact
  end
  row('total', '', usage.total, exact, 'Bold')
  local columns = {
    { title = 'category' },
    { title = 'label' },
    { title = 'tokens', right = true },
    { title = 'share', right = true },
    { title = 'count' },
  }
  page.table(shown, columns, rows)
end

local function add_problems(shown, problems)
  if #problems == 0 then
    return
  end
  page.add(shown, '')
  page.rule(shown, plural(#problems, 'problem'))
  for _, problem in ipairs(problems) do
    local start = problem.range.start
    page.add(
      shown,
      ('%s  %s:%d:%d  %s'):format(
        SEVERITIES[problem.severity],
        short_path(problem.uri, shown.folder),
        start.line + 1,
        start.character + 1,
        problem.message
      ),
      GROUPS[problem.severity],
      problem
    )
  end
end

local function text_of(content)
  if type(content) == 'string' then
    return content
  end
  return vim
    .iter(content or {})
    :map(function(part)
      return part.text or ('[%s]'):format(part.type)
    end)
    :join('\n')
end

local function add_message(shown, title, message)
  page.add(shown, '')
  page.rule(shown, title)
  page.add(shown, text_of(message.content))
  for _, call in ipairs(message.toolCalls or {}) do
    page.add(shown, ('%s(%s)'):format(call.name, vim.json.encode(call.arguments)))
  end
end

--- Send a request, then show its result as a page; the view is the buffer's name, too.
local function show(view, call, method, params, fill, folder)
  folder = folder or nexus.folder()
  nexus.request(method, folder, params, function(result, client)
    local shown = page.new(folder)
    fill(shown, result)
    page.open(shown, { view = view, client = client, mods = call.smods })
  end)
end

M.show = show

--- :NexusContext [message]
function M.context(call)
  local message = call.args ~= '' and call.args or nil
  show('context', call, 'nexus/context/assemble', { message = message }, function(shown, result)
    add_usage(shown, result.usage)
    add_problems(shown, result.problems)
    page.add(shown, '')
    page.rule(shown, 'system prompt')
    page.add(shown, result.systemPrompt)
    for _, each in ipairs(result.history) do
      add_message(shown, 'history: ' .. each.role, each)
    end
    if result.currentMessage then
      add_message(shown, 'current message', result.currentMessage)
    end
  end)
end

--- :NexusUsage
function M.usage(call)
  show('usage', call, 'nexus/context/usage', {}, add_usage)
end

--- First line, from 0, of a fragment's own text: one that starts at a line's end begins on the next.
local function first_line(lines, range)
  local start = range.start
  return start.character > 0 and start.character >= #lines[start.line + 1] and start.line + 1 or start.line
end

local function is_empty(range)
  return vim.deep_equal(range.start, range['end'])
end

--- What a part costs and comes from, noted at its first line.
local function add_notes(shown, fragments)
  local run = {}
  for index, fragment in ipairs(fragments) do
    if fragment.title ~= run.title or fragment.layer ~= run.layer then
      run = {
        title = fragment.title,
        layer = fragment.layer,
        tokens = 0,
        line = first_line(shown.lines, fragment.range),
      }
    end
    run.tokens = run.tokens + fragment.tokens
    local source = fragment.layer and fragment.source
    run.path = run.path or source and short_path(source.uri, shown.folder) .. ', ' or ''
    local following = fragments[index + 1]
    if not following or following.title ~= run.title or following.layer ~= run.layer then
      shown.notes[run.line + 1] = run.path .. plural(run.tokens, 'token')
    end
  end
end

--- Where Enter leads: the same line of the source; for a line that Nexus wrote, the start of the source.
local function add_targets(shown, fragments)
  for _, fragment in ipairs(fragments) do
    local source, first = fragment.source, fragment.range.start.line
    local last = fragment.range['end'].line - (fragment.range['end'].character == 0 and 1 or 0)
    local verbatim = source and not is_empty(source.range)
    for line = first, source and last or -1 do
      local at = { line = source.range.start.line + (verbatim and line - first or 0), character = 0 }
      if verbatim or (fragment.layer and not shown.targets[line + 1]) then
        shown.targets[line + 1] = { uri = source.uri, range = { start = at, ['end'] = at } }
      end
    end
  end
end

local function fill_preview(shown, result)
  page.add(shown, result.text)
  add_notes(shown, result.fragments)
  add_targets(shown, result.fragments)
end

--- :NexusPreview
function M.preview(call)
  show('preview', call, 'nexus/context/preview', {}, fill_preview)
end

--- A code lens that is run: what it counts in the system prompt, or the layers for what is not there.
---@param command lsp.Command of the lens
function M.lens(command)
  local target = command.arguments[1]
  local folder = vim.fs.normalize(vim.uri_to_fname(target.workspaceFolder))
  local call = { smods = vim.api.nvim_parse_cmd('NexusPreview', {}).mods }
  if not target.prompt then
    return M.layers(call, folder)
  end
  show('preview', call, 'nexus/context/preview', { agent = target.agent, assistant = target.assistant }, function(shown, result)
    fill_preview(shown, result)
    shown.at = target.prompt
  end, folder)
end

--- :NexusLayers
function M.layers(call, folder)
  show('layers', call, 'nexus/context/layers', {}, function(shown, result)
    local rows = {}
    for _, layer in ipairs(result.layers) do
      for _, file in ipairs(layer.files) do
        local group = file.status == 'missing' and 'Comment'
          or file.status ~= 'loaded' and 'DiagnosticWarn'
          or nil
        local target = file.status ~= 'missing' and { uri = file.uri } or nil
        local cells = {
          layer.name,
          file.kind,
          file.status,
          file.tokens and grouped(file.tokens) or '',
          short_path(file.uri, shown.folder),
        }
        table.insert(rows, { cells = cells, group = group, target = target })
      end
    end
    local columns = {
      { title = 'layer' },
      { title = 'kind' },
      { title = 'status' },
      { title = 'tokens', right = true },
      { title = 'file', tail = true },
    }
    page.table(shown, columns, rows)
    if #result.skipped > 0 then
      page.add(shown, '')
      page.rule(shown, 'skipped')
      for _, skipped in ipairs(result.skipped) do
        page.add(shown, ('%s: %s'):format(skipped.path, skipped.reason))
      end
    end
    add_problems(shown, result.problems)
  end, folder)
end

--- :NexusInit [directory]
function M.init(call)
  local folder = vim.fs.normalize(vim.fs.abspath(call.args ~= '' and call.args or vim.fn.getcwd()))
  if vim.fn.isdirectory(folder) == 0 then
    vim.notify('nexus: ' .. folder .. ' is no directory', vim.log.levels.ERROR)
    return
  end
  nexus.request('nexus/workspace/init', folder, {}, function(result)
    local function list(uris)
      return vim
        .iter(uris)
        :map(function(uri)
          return short_path(uri, folder)
        end)
        :join(', ')
    end
    local made = #result.created > 0 and 'created ' .. list(result.created) or 'nothing to create'
    local kept = #result.existing > 0 and '; already there: ' .. list(result.existing) or ''
    vim.notify('nexus: ' .. made .. kept)
  end)
end

return M
