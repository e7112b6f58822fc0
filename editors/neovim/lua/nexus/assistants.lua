--- What Claude Code, Codex and other assistants read in a folder, and their sessions that run there.

local nexus = require('nexus')
local page = require('nexus.page')
local text = require('nexus.text')
local view = require('nexus.view')

local grouped, plural, short_path = text.grouped, text.plural, text.short_path

local M = {}

local SIGNS = { sent = '●', cut = '◐', later = '○', unread = '–' }
local MEANINGS = '● in every request   ◐ in part   ○ when something happens   – not read'
local TITLES = {
  ['claude-code'] = 'Claude Code',
  codex = 'Codex',
  opencode = 'opencode',
  gemini = 'Gemini CLI',
  copilot = 'GitHub Copilot',
  cursor = 'Cursor',
}
--- Titles that leave room for the files in 80 columns.
local SHORT = { ['claude-code'] = 'Claude', gemini = 'Gemini', copilot = 'Copilot' }
local NAMES = { 'claude-code', 'codex', 'opencode', 'gemini', 'copilot', 'cursor' }
local WITH_SESSIONS = { ['claude-code'] = true, codex = true, opencode = true }
local STARTS = { starts = 'starts with it', asks = 'waits for approval', off = 'is off' }
local CAUSES = {
  idle = 'the cache had gone cold',
  model = 'another model',
  compaction = 'a compaction',
  version = 'another version of the program',
  instructions = 'an instruction file changed',
  tools = 'other tools, or another prompt',
  rewritten = 'the beginning changed',
}

--- Sessions that were announced: folder and id → true.
local announced = {}

function M.complete(typed)
  return vim
    .iter(NAMES)
    :filter(function(name)
      return vim.startswith(name, typed)
    end)
    :totable()
end

local function tokens_of(count, exact)
  return (exact and '' or '≈') .. plural(count, 'token')
end

local function dollars(value)
  return ('$%.' .. (value >= 0.01 and '2' or '4') .. 'f'):format(value)
end

local function time_of(seconds)
  return os.date('%H:%M', math.floor(seconds))
end

-- ---------------------------------------------------------------- who reads what

--- :NexusReaders
function M.readers(call)
  view.show('readers', call, 'nexus/assistant/readers', {}, function(shown, result)
    local columns = { { title = 'file', tail = true } }
    for _, assistant in ipairs(result.assistants) do
      columns[#columns + 1] = { title = SHORT[assistant.name] or assistant.title }
    end
    local rows = {}
    for _, file in ipairs(result.files) do
      local cells = { short_path(file.uri, shown.folder) }
      for _, reader in ipairs(file.readers) do
        local tokens = reader.tokens > 0 and (reader.exact and ' ' or ' ≈') .. grouped(reader.tokens) or ''
        cells[#cells + 1] = SIGNS[reader.use] .. tokens
      end
      rows[#rows + 1] = { cells = cells, target = { uri = file.uri } }
    end
    if #rows == 0 then
      return page.add(shown, 'There is no instruction file of any assistant in this folder.')
    end
    page.table(shown, columns, rows)
    page.add(shown, '')
    page.add(shown, MEANINGS, 'Comment')
  end)
end

-- ---------------------------------------------------------------- one assistant

--- What a session that runs here has in its window, and what its cache, compactions and tools cost.
local function add_session(shown, report)
  local session, cache, window = report.session, report.cache, report.context
  page.rule(shown, 'running: ' .. (session.title or session.id))
  local size = window.size and (' of %s (%.1f %%)'):format(grouped(window.size), 100 * window.used / window.size)
    or ''
  page.add(shown, ('%s%s, %s'):format(grouped(window.used), size, plural(report.requests, 'request')), 'Bold')
  local rows = {}
  for _, part in ipairs(window.parts) do
    local label = part.server and part.server .. ': ' .. part.label or part.label
    if part.category == 'instructions' and label and vim.startswith(label, '/') then
      label = short_path(vim.uri_from_fname(label), shown.folder)
    end
    rows[#rows + 1] = { cells = { part.category, label or '', '≈' .. grouped(part.tokens) } }
  end
  page.table(shown, { { title = 'kind' }, { title = 'what' }, { title = 'tokens', right = true } }, rows)
  page.add(shown, '')
  local last = session.last
  local sent = last and last.fresh + last.cacheRead + last.cacheWrite or 0
  if sent > 0 then
    local cold = ''
    if cache and cache.coldAt then
      cold = (cache.coldAt > os.time() and ', cold at ' or ', cold since ') .. time_of(cache.coldAt)
    end
    page.add(shown, ('cache: %.0f %% of the last request%s'):format(100 * last.cacheRead / sent, cold))
  end
  if cache and cache.coldUsd and cache.warmUsd then
    page.add(
      shown,
      ('next turn: %s with a warm cache, %s with a cold one'):format(
        dollars(cache.warmUsd),
        dollars(cache.coldUsd)
      )
    )
  end
  local miss = report.misses[#report.misses]
  if miss and miss.cause ~= 'first' then
    local cause = CAUSES[miss.cause] or miss.cause
    page.add(
      shown,
      ('cache miss at %s: %s, %s written again'):format(time_of(miss.at), cause, plural(miss.tokens, 'token'))
    )
  end
  local compaction = report.compactions[#report.compactions]
  if compaction then
    local lost = {}
    for kind, count in pairs(compaction.dropped and compaction.dropped.counts or {}) do
      lost[#lost + 1] = ('%d %s'):format(count, kind)
    end
    table.sort(lost)
    local dropped = #lost > 0 and ', dropped ' .. table.concat(lost, ', ') or ''
    page.add(shown, ('compacted at %s%s'):format(time_of(compaction.at), dropped))
  end
  if session.costUsd then
    local origin = report.costOrigin == 'program' and '' or ', by the prices that Nexus knows'
    page.add(shown, ('cost: %s%s'):format(dollars(session.costUsd), origin))
  end
  page.add(shown, '')
end

local function add_files(shown, name, result)
  local verified = result.verified == 'run' and 'by its own requests' or 'by documentation'
  local exact, sent, others, own = true, {}, {}, result.total
  for _, file in ipairs(result.files) do
    if file.loaded then
      exact, own = exact and file.exact, own - file.tokens
      sent[#sent + 1] = {
        cells = { file.scope, short_path(file.uri, shown.folder), tokens_of(file.tokens, file.exact) },
        target = { uri = file.uri, range = file.cutAt and { start = file.cutAt, ['end'] = file.cutAt } },
        group = file.cutAt and 'DiagnosticWarn' or nil,
      }
    else
      others[#others + 1] = file
    end
  end
  local title = ('%s %s, %s: %s of files in every request'):format(
    TITLES[name],
    result.version,
    verified,
    tokens_of(result.total, exact)
  )
  page.add(shown, title, 'Bold')
  page.add(shown, '')
  if own > 0 then
    sent[#sent + 1] = { cells = { 'program', 'text of ' .. TITLES[name], tokens_of(own, exact) } }
  end
  if #sent > 0 then
    page.table(shown, { { title = 'scope' }, { title = 'file', tail = true }, { title = 'tokens' } }, sent)
  end
  for _, server in ipairs(result.servers) do
    local reason = server.reason and ': ' .. server.reason or ''
    local line = ('MCP server %s (%s) %s%s'):format(server.name, server.scope, STARTS[server.start], reason)
    page.add(shown, line, nil, { uri = server.uri })
  end
  for _, file in ipairs(others) do
    local path = vim.startswith(file.uri, 'file:') and short_path(file.uri, shown.folder) or file.uri
    page.add(shown, ('%s: %s'):format(path, file.reason or ''), 'Comment', { uri = file.uri })
  end
end

--- The session of an assistant that runs in a folder and went on last, or nil; and why none is read, or nil.
local function with_report(folder, name, run)
  if not WITH_SESSIONS[name] then
    return run(nil)
  end
  nexus.request('nexus/assistant/sessions', folder, { assistant = name, live = true }, function(result)
    local session = vim.iter(result.sessions):find(function(each)
      return not each.parent
    end)
    if not session then
      return run(nil, result.notice)
    end
    nexus.request('nexus/assistant/session', folder, { assistant = name, id = session.id }, run)
  end)
end

local function show_assistant(call, name, folder)
  with_report(folder, name, function(report, notice)
    view.show('assistant', call, 'nexus/assistant/context', { assistant = name }, function(shown, result)
      if report then
        add_session(shown, report)
      elseif notice then
        page.add(shown, notice, 'Comment')
        page.add(shown, '')
      end
      add_files(shown, name, result)
    end, folder)
  end)
end

--- :NexusAssistant [name]: without one, the user picks it.
function M.assistant(call)
  local folder = nexus.folder()
  if call.args ~= '' then
    if not TITLES[call.args] then
      local all = table.concat(NAMES, ', ')
      local message = ('nexus: there is no assistant "%s". There are: %s'):format(call.args, all)
      return vim.notify(message, vim.log.levels.ERROR)
    end
    return show_assistant(call, call.args, folder)
  end
  nexus.request('nexus/assistant/readers', folder, {}, function(result)
    vim.ui.select(result.assistants, {
      prompt = 'Whose context?',
      format_item = function(assistant)
        local cost = assistant.tokens > 0
            and tokens_of(assistant.tokens, assistant.exact) .. ' of files in every request'
          or 'reads nothing here'
        return ('%s  %s'):format(assistant.title, cost)
      end,
    }, function(assistant)
      if assistant then
        show_assistant(call, assistant.name, folder)
      end
    end)
  end)
end

--- Handler of nexus/assistant/didChange: says once that a session runs here, and fires `User NexusAssistantChanged`.
function M.on_change(_, params, context)
  local key = params.workspaceFolder .. ' ' .. params.id
  if params.reason ~= 'idle' and not announced[key] then
    announced[key] = true
    local folder = vim.fs.basename(vim.uri_to_fname(params.workspaceFolder))
    local message = 'nexus: %s runs in %s: :NexusAssistant %s'
    vim.notify(message:format(TITLES[params.assistant] or params.assistant, folder, params.assistant))
  end
  require('nexus').refresh_view(vim.lsp.get_client_by_id(context.client_id), params.workspaceFolder)
  vim.api.nvim_exec_autocmds('User', { pattern = 'NexusAssistantChanged', modeline = false, data = params })
end

return M
